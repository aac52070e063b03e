import { constants } from 'node:os';
import { getSystemErrorMap } from 'node:util';

/** An error of the operating system. */
export interface SystemError {
  /** Such as `ENOSPC`. */
  readonly name: string;
  /** Such as `no space left on device`. */
  readonly meaning: string;
}

/** What Node.js has no text for: it calls these `Unknown system error -122`. */
const meanings: Readonly<Record<string, string>> = {
  EBADMSG: 'bad message',
  EDQUOT: 'disk quota exceeded',
  ENOLCK: 'no locks available',
  ENOLINK: 'link has been severed',
  ESTALE: 'stale file handle',
  ETIME: 'timer expired',
};

/** All errors of the operating system, by their positive number. */
const byNumber: ReadonlyMap<number, SystemError> = new Map([
  ...Object.entries(constants.errno).map(
    ([name, number]) => [number, { name, meaning: meanings[name] ?? 'system error' }] as const,
  ),
  ...[...getSystemErrorMap()].map(([number, [name, meaning]]) => [-number, { name, meaning }] as const),
]);
const byName: ReadonlyMap<string, SystemError> = new Map([...byNumber.values()].map((error) => [error.name, error]));

/** Errors of calls on files that are limits of the process or of the machine, or over in a moment. */
const limitErrors: readonly string[] = ['EAGAIN', 'EBUSY', 'ECANCELED', 'EINTR', 'EMFILE', 'ENFILE', 'ENOMEM'];

/**
 * Errors of calls on files that are mistakes of the program, or `limitErrors`. Any other one means that the disk
 * refuses: a list of those would miss some, such as EDQUOT and EROFS.
 */
const ownErrors: ReadonlySet<string> = new Set([
  ...[
    'E2BIG',
    'EBADF',
    'ECHILD',
    'EDEADLK',
    'EDOM',
    'EEXIST',
    'EFAULT',
    'EINVAL',
    'EISDIR',
    'ELOOP',
    'ENAMETOOLONG',
    'ENOENT',
    'ENOEXEC',
  ],
  ...['ENOSYS', 'ENOTDIR', 'ENOTEMPTY', 'ENOTSUP', 'EOPNOTSUPP', 'EPIPE', 'ERANGE', 'ESRCH', 'ETXTBSY', 'EXDEV'],
  ...limitErrors,
]);

/**
 * The error of the operating system that Node.js, or lmdb-js with a positive number as `code`, has thrown; null for
 * anything else.
 */
export function systemErrorOf(thrown: unknown): SystemError | null {
  // Its `code` is a number too, of another list.
  if (!(thrown instanceof Error) || thrown instanceof DOMException) return null;
  const { code, errno } = thrown as { code?: unknown; errno?: unknown };
  if (typeof errno === 'number') return byNumber.get(Math.abs(errno)) ?? null;
  if (typeof code === 'number') return byNumber.get(code) ?? null;
  return typeof code === 'string' ? (byName.get(code) ?? null) : null;
}

/** Whether an error of a write to a file means that the disk refuses it or fails. */
export function isDiskError({ name }: SystemError): boolean {
  return !ownErrors.has(name);
}

/**
 * Whether an error of a call on a file means that the process or the machine lacks something for a moment, such as
 * memory.
 */
export function isLimitError({ name }: SystemError): boolean {
  return limitErrors.includes(name);
}

/**
 * Adds the path of a file to an error of a call on its descriptor (`fsync`, `write`), which does not name it: also to
 * that of `writeFile` of Node.js, which has the path. Returns the error.
 */
export function nameFile(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof Error) || !('syscall' in thrown) || 'path' in thrown) return thrown;
  return Object.assign(thrown, { path, message: `${thrown.message} '${path}'` });
}

/** Awaits a call on the descriptor of a file, whose error then names the file, as `nameFile` does. */
export async function naming<T>(path: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw nameFile(error, path);
  }
}
