import { testCore } from './core-test.ts';
import { createServer, type HttpServer, nativeCore } from './listen.ts';

/** Whether the HTTP core can be served with, in words for an operator. */
export interface CoreCheck {
  /** `warn`: it could not be tested; `fail`: it does not run here, or corrupts what it sends. */
  readonly level: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** What to do; null when nothing is to be done. */
  readonly remedy: string | null;
}

/** What to do where the HTTP core does not run. */
export const OTHER_NODE = 'Install one of these versions of Node that fits the system, and run `npm ci` again.';

/**
 * Loads the HTTP core, sends text through it and judges what arrives (`testCore`). Takes some milliseconds. Never rejects.
 *
 * @param newServer makes a server that doesn't listen yet, or throws where there is no core
 */
export async function checkCore(newServer: () => HttpServer = createServer): Promise<CoreCheck> {
  let server: HttpServer;
  try {
    server = newServer();
  } catch (error) {
    return { level: 'fail', finding: error instanceof Error ? error.message : String(error), remedy: OTHER_NODE };
  }
  const { strings, bytes } = await testCore(server);
  const { file, old } = nativeCore();
  if (bytes === 'corrupted') {
    return {
      level: 'fail',
      finding: `${file} corrupts text: what the server sends is not what arrives`,
      remedy: 'Install another version of Node (20, 22 or 24), or `npm ci` again.',
    };
  }
  if (bytes === 'untested') {
    return { level: 'warn', finding: `${file} could not be tested: nothing came back over 127.0.0.1`, remedy: 'Bring the loopback interface up.' };
  }
  const note = strings === 'intact' ? '' : '; it would corrupt text given as strings, so the server gives it bytes';
  return { level: 'ok', finding: `${file}, ${old ? 'of 2024' : 'current'}${note}`, remedy: null };
}
