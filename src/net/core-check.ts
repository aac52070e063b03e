import { messageOf } from '../lib/thrown.ts';
import type { CoreKind, HttpServer } from './core.ts';
import { createServer } from './listen.ts';
import { testTextIntegrity } from './text-integrity.ts';
import { nativeCore, OTHER_CORE } from './uws/native-core.ts';

/** Whether the native core of uWebSockets.js works here, described for the operator. */
export interface CoreCheck {
  /** `warn`: the core could not be tested; `fail`: it does not run here, or it corrupts what it sends. */
  readonly level: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** The action for the operator; null if there is none. */
  readonly remedy: string | null;
}

/** The core that a server runs on, and why. */
export interface CoreChoice {
  readonly kind: CoreKind;
  /** The file of the native core, or `node`. */
  readonly name: string;
  /** Why it is not the native core; '' if it is. */
  readonly reason: string;
  /** Whether it is the native core for Node 20, which must not be exposed without a proxy. */
  readonly old: boolean;
  /** The check of the native core; null if it was not asked for. */
  readonly check: CoreCheck | null;
}

/**
 * Chooses the core: the native one if it works here, otherwise the one on Node's HTTP server. Takes some milliseconds.
 *
 * @param setting the option `core`
 * @returns with `setting` `uws`, the native core even if its check fails; `check` then says why
 */
export async function chooseCore(setting: CoreKind | 'auto'): Promise<CoreChoice> {
  const node = { kind: 'node', name: 'node', old: false } as const;
  if (setting === 'node') return { ...node, reason: 'the option core is node', check: null };
  const check = await checkCore();
  if (setting === 'auto' && check.level === 'fail') return { ...node, reason: check.finding, check };
  const { file, old } = nativeCore();
  return { kind: 'uws', name: file, reason: '', old, check };
}

/**
 * Loads the native core and checks that text passes through it unchanged. Takes some milliseconds. Never rejects.
 *
 * @param newServer creates a server that does not listen yet, or throws if no native core runs here
 */
export async function checkCore(newServer: () => HttpServer = () => createServer('uws')): Promise<CoreCheck> {
  let server: HttpServer;
  try {
    server = newServer();
  } catch (error) {
    return { level: 'fail', finding: messageOf(error), remedy: OTHER_CORE };
  }
  const { strings, bytes } = await testTextIntegrity(server);
  const { file, old } = nativeCore();
  if (bytes === 'corrupted') {
    return {
      level: 'fail',
      finding: `${file} corrupts text: the bytes that arrive are not those that were sent`,
      remedy: OTHER_CORE,
    };
  }
  if (bytes === 'untested') {
    return {
      level: 'warn',
      finding: `${file} could not be tested: a request over 127.0.0.1 got no response`,
      remedy: 'Bring the loopback interface up.',
    };
  }
  const note = strings === 'intact' ? '' : '; it corrupts text passed as strings, so the server passes bytes';
  return { level: 'ok', finding: `${file}, ${old ? 'of 2024' : 'current'}${note}`, remedy: null };
}
