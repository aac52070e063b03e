import { isCertificateError } from '../../lib/certificate-error.ts';
import { firstLine } from '../../lib/thrown.ts';
import { EngineError } from '../../ports/engine-error.ts';
import type { Target } from './target.ts';

/**
 * What the failure of a statement means. `conflict`: the server has rolled the transaction back so that others can go
 * on; run it again. `lost`: the connection is gone or was never made, or the server is about to end it or only reads:
 * whether a COMMIT took effect is unknown. `full`: no space left. `refused`: anything else, as an error of the disk or
 * a lack of rights.
 */
export type Fault = 'conflict' | 'lost' | 'full' | 'refused';

/** The connection was lost, or could not be made. Its message is that of its cause. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}

/** The SQLSTATE that the server sent with an error; undefined for an error that is not from the server. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Serialization failure, deadlock, and a lock that others hold for too long. */
const conflicts: ReadonlySet<string> = new Set(['40001', '40P01', '55P03']);
/**
 * Shutdown, crash, start-up, idle in a transaction for too long, too many connections, a standby (which refuses writes,
 * and functions about the WAL), a pooler that cannot reach its server.
 */
const losses: ReadonlySet<string> = new Set([
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  '25P03',
  '25P04',
  '53300',
  '25006',
  '55000',
]);

/** What a failure of a statement or of connecting means. */
export function faultOf(error: unknown): Fault {
  const state = sqlState(error);
  if (state === undefined) return error instanceof ConnectionLost ? 'lost' : 'refused';
  if (state.startsWith('08') || losses.has(state)) return 'lost';
  if (conflicts.has(state)) return 'conflict';
  return state === '53100' ? 'full' : 'refused';
}

/** The one line for an operator about a database that could not be opened. */
export function openingError(target: Target, error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const cause = error instanceof ConnectionLost ? (error.cause ?? error) : error;
  const [retry, meaning] = meaningOf(target, cause, faultOf(error));
  return new EngineError(target.option, `PostgreSQL at ${target.label} ${meaning}`, { retry, cause });
}

function meaningOf(target: Target, error: unknown, fault: Fault): readonly [retry: boolean, meaning: string] {
  const said = firstLine(error);
  const state = sqlState(error) ?? '';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/client password must be/.test(said)) return [false, `demands a password of ${target.user}: put it into the URL`];
  if (state === '28P01')
    return [false, `refuses the password of the user ${target.user}: set the right one in the URL`];
  if (state === '28000' || /no such user|no pg_hba/.test(said))
    return [false, `refuses the login (${said}): check the user, pg_hba.conf, and whether the URL needs sslmode`];
  if (state === '3D000' || /no such database/.test(said))
    return [false, `has no database ${target.database}: create it with createdb, or correct the URL`];
  if (state === '42501')
    return [
      false,
      `does not let ${target.user} do this (${said}): grant it CREATE on the database, or ownership of the schema collab`,
    ];
  if (state === '25006' || state === '55000') return [false, 'is a read-only standby: let the URL name the primary'];
  if (/does not support SSL/.test(said)) return [false, 'offers no TLS: enable it there, or set sslmode=disable'];
  if (isCertificateError(code) || code.startsWith('ERR_SSL') || /certificate|altnames/i.test(said))
    return [
      false,
      `has a certificate that does not verify (${said}): set sslrootcert to the file of its authority, and the host of the URL to the name in the certificate`,
    ];
  if (state === '53300' || /too many (?:clients|connections)/.test(said))
    return [true, 'has no connection left: raise its max_connections, or lower store.connections'];
  if (fault === 'lost') return [true, `cannot be reached (${said}): check host, port and firewall, and that it runs`];
  return [false, `refuses the start: ${said}${state === '' ? '' : ` (SQLSTATE ${state})`}`];
}
