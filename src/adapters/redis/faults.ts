import { isCertificateError } from '../../lib/certificate-error.ts';
import { firstLine } from '../../lib/thrown.ts';
import { CollabError } from '../../model/errors.ts';
import { EngineError } from '../../ports/engine-error.ts';
import type { Target } from './target.ts';

/** The connection was lost, or could not be made. Its message is that of its cause. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}

/**
 * Answers of a server that does not do what a connection to it is for: it has become a replica, is starting, has lost
 * the slot or its master. Another connection may lead to one that does.
 */
const LOSSES = /^(?:READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|NOAUTH|UNBLOCKED)\b/;

/** Whether an answer means that the connection is of no use any more. */
export function isLoss(error: Error): boolean {
  return LOSSES.test(error.message);
}

/** The refusal of a call whose outcome is unknown, or which the server has refused. */
export function storeError(cause: unknown): CollabError {
  const message = 'The shared memory of the servers does not answer';
  return Object.assign(new CollabError('storage_unavailable', message), { cause });
}

/** The one line for an operator about a server that could not be opened. */
export function openingError(target: Target, error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const cause = error instanceof ConnectionLost ? (error.cause ?? error) : error;
  const [retry, meaning] = meaningOf(target, cause);
  return new EngineError('shared.url', `Redis at ${target.label} ${meaning}`, { retry, cause });
}

function meaningOf(target: Target, error: unknown): readonly [retry: boolean, meaning: string] {
  const said = firstLine(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^WRONGPASS|invalid password|invalid username-password/i.test(said))
    return [false, 'refuses the user or the password: set the right ones in the URL'];
  if (said.startsWith('NOAUTH')) return [false, 'demands a password: put it into the URL'];
  if (/DB index|SELECT is not allowed/i.test(said))
    return [false, `has no database ${target.database}: correct the number at the end of the URL`];
  if (/^NOPERM|user executing the script|ACL failure in script/.test(said))
    return [false, `does not let the user do this (${said}): run ACL SETUSER with ${rightsOf(target)}`];
  if (said.startsWith('DENIED')) return [false, 'is in protected mode: set a password there, and put it into the URL'];
  if (/unknown command ['`]HELLO/i.test(said)) return [false, 'is too old: Redis 7 or Valkey is needed'];
  if (isCertificateError(code) || /certificate|altnames/i.test(said))
    return [
      false,
      `has a certificate that does not verify (${said}): let ca in the URL name the file of its authority, and the host of the URL be one of the certificate`,
    ];
  if (/^ERR_SSL|^EPROTO/.test(code))
    return [false, `does not speak TLS (${said}): write redis:// in place of rediss://`];
  if (said.startsWith('ERR ')) return [false, `refuses the start: ${said}`];
  const tls = tlsHint(target, said);
  return [true, `cannot be reached (${said}): check host, port and firewall, and that it runs${tls}`];
}

/** What else may be wrong with a server that closes connections, or says nothing. */
function tlsHint({ tls }: Target, said: string): string {
  if (tls === false) return /closed/i.test(said) ? ', and write rediss:// if it expects TLS' : '';
  return /no answer|timeout/i.test(said) ? ', and write redis:// if it has no TLS' : '';
}

/** The rights that a user needs, as ACL SETUSER takes them. */
function rightsOf({ tag, database }: Target): string {
  const commands = '+eval +evalsha +time +@read +@write +@pubsub';
  return `~${tag}:* &${tag}:* ${commands}${database === 0 ? '' : ' +select'}`;
}
