import { createServer, type HttpServer, nativeCore } from './listen.ts';
import { testTextIntegrity } from './text-integrity.ts';

/** Whether the native core of uWebSockets.js works here, described for the operator. */
export interface CoreCheck {
  /** `warn`: the core could not be tested; `fail`: it does not run here, or it corrupts what it sends. */
  readonly level: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** What the operator should do; null for nothing. */
  readonly remedy: string | null;
}

/** The remedy if the core does not run here; it follows a message that names the supported versions of Node. */
export const OTHER_NODE = 'Install one of these versions of Node that fits the system, and run `npm ci` again.';

/**
 * Loads the core and checks that text passes through it unchanged. Takes some milliseconds. Never rejects.
 *
 * @param newServer creates a server that does not listen yet, or throws if no core runs here
 */
export async function checkCore(newServer: () => HttpServer = createServer): Promise<CoreCheck> {
  let server: HttpServer;
  try {
    server = newServer();
  } catch (error) {
    return { level: 'fail', finding: error instanceof Error ? error.message : String(error), remedy: OTHER_NODE };
  }
  const { strings, bytes } = await testTextIntegrity(server);
  const { file, old } = nativeCore();
  if (bytes === 'corrupted') {
    return {
      level: 'fail',
      finding: `${file} corrupts text: the bytes that arrive are not those that were sent`,
      remedy: 'Install another version of Node (20, 22 or 24), or `npm ci` again.',
    };
  }
  if (bytes === 'untested') {
    return { level: 'warn', finding: `${file} could not be tested: a request over 127.0.0.1 got no response`, remedy: 'Bring the loopback interface up.' };
  }
  const note = strings === 'intact' ? '' : '; it corrupts text passed as strings, so the server passes bytes';
  return { level: 'ok', finding: `${file}, ${old ? 'of 2024' : 'current'}${note}`, remedy: null };
}
