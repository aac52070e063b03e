import type { CoreKind, HttpServer } from '../../src/net/core.ts';
import { chooseCore } from '../../src/net/core-check.ts';
import { createServer } from '../../src/net/listen.ts';

const { kind, check } = await chooseCore(settingOf(process.env['COLLAB_CORE']));

/** The core that tests run on: the one that `COLLAB_CORE` names, or else the native one where it works. */
export const testCore: CoreKind = kind;

/** Why tests of the native core cannot run here; false if they can. */
export const noNativeCore: string | false = noneReason((check ?? (await chooseCore('uws')).check)?.level);

/** A server on the core of the tests, which does not listen yet. */
export function newServer(core: CoreKind = testCore): HttpServer {
  return createServer(core);
}

/**
 * Whether this is all that a client receives when a request could be read in two ways: nothing, or, where the parser of
 * Node's HTTP server has refused it before our own checks, 400.
 */
export function isDropped(received: string): boolean {
  return received === '' || (testCore === 'node' && received.startsWith('HTTP/1.1 400 '));
}

function noneReason(level: string | undefined): string | false {
  return level === 'fail' ? 'uWebSockets.js does not run here' : false;
}

function settingOf(text: string | undefined): CoreKind | 'auto' {
  if (text === undefined || text === '' || text === 'auto') return 'auto';
  if (text === 'uws' || text === 'node') return text;
  throw new Error(`COLLAB_CORE must be auto, uws or node, not ${text}`);
}
