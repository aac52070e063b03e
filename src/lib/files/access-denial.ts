import { accessSync, constants, statSync, type Stats } from 'node:fs';
import { dirname, parse, resolve, sep } from 'node:path';
import { systemErrorOf } from '../errno.ts';
import { describeUser } from '../process/user-names.ts';
import { shellWord } from '../shell-word.ts';

/** Why a call on a file was refused, for an operator. */
export interface AccessDenial {
  /** Which user may not use which path, and whose it is. A full sentence. */
  readonly message: string;
  /** What to do, in full sentences. */
  readonly remedy: string;
}

const refusals: ReadonlySet<string | undefined> = new Set(['EACCES', 'EPERM']);

/**
 * Explains an error of a call on a file that this user may not use, or an error with such a `cause`. Null for anything
 * else, and if neither names the file.
 */
export function accessDenialOf(thrown: unknown): AccessDenial | null {
  if (!(thrown instanceof Error)) return null;
  const { cause, path = (cause as { path?: unknown } | undefined)?.path } = thrown as {
    cause?: unknown;
    path?: unknown;
  };
  const error = [thrown, cause].map(systemErrorOf).find((found) => refusals.has(found?.name));
  if (error === undefined || error === null || typeof path !== 'string') return null;
  return describe(resolve(path), error.name);
}

function describe(path: string, code: string): AccessDenial {
  const uid = process.geteuid?.();
  const denying = findDenying(path);
  const user = uid === undefined ? 'This user' : `The user ${describeUser(uid)}`;
  const owner =
    denying.stats === undefined || uid === undefined ? '' : `, which belongs to ${describeUser(denying.stats.uid)}`;
  const about = denying.path === path ? '' : ` (for ${path})`;
  return {
    message: `${user} may not use ${denying.path}${about}${owner}: permission denied (${code}).`,
    remedy: remedyFor(denying, uid),
  };
}

interface Denying {
  readonly path: string;
  /** Undefined if there is nothing at `path`, or it cannot be seen. */
  readonly stats: Stats | undefined;
}

/**
 * The first folder on the way to `path` that may not be entered; otherwise `path` itself, or its folder if there is
 * nothing at `path`.
 */
function findDenying(path: string): Denying {
  const { root } = parse(path);
  let folder = root;
  for (const name of path.slice(root.length).split(sep)) {
    if (!may(folder, constants.X_OK)) return { path: folder, stats: statsOf(folder) };
    folder = resolve(folder, name);
  }
  const stats = statsOf(path);
  const folderDenies =
    stats === undefined || (may(path, constants.R_OK | constants.W_OK) && !may(dirname(path), constants.W_OK));
  return folderDenies ? { path: dirname(path), stats: statsOf(dirname(path)) } : { path, stats };
}

function remedyFor({ path, stats }: Denying, uid: number | undefined): string {
  if (stats === undefined || uid === undefined)
    return 'Choose a path that this user may use, or change its permissions.';
  if (uid === 0)
    return (
      'Root itself is refused: look for attributes of the file (lsattr), a read-only or network mount, and ' +
      'rules of SELinux or AppArmor.'
    );
  if (stats.uid === uid) return `Allow it: chmod u+rwX ${shellWord(path)}`;
  const own = statsOf(dirname(path));
  // What another user has left in a folder of this one.
  if (own?.uid === uid)
    return `Give it to this user, as root: chown -R ${own.uid}:${own.gid} ${shellWord(path)} ; \`collab doctor\` names everything like it.`;
  if (stats.uid === 0) return 'Choose a path that this user may use, or let root give it to this user.';
  return `Run this as ${describeUser(stats.uid)}, or as root.`;
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
