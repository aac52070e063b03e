import { accessSync, constants, realpathSync, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../../config/error.ts';
import { loadConfig } from '../../config/load.ts';
import { describeUser } from '../../lib/process/user-names.ts';
import { Failure } from '../failure.ts';
import { operatorName } from './operator.ts';

/** The owner of a folder. */
interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Makes a process of root one of the user who owns the data folder, or the folder `dir` while there is no data folder:
 * otherwise the server, which runs as that user, could not use what a command leaves in it (decision 67). Call it
 * before anything in the folder is touched. Does nothing for folders of root, and while there is no folder.
 *
 * @throws {Failure} if the system does not allow it, or that user may not read the program
 */
export async function becomeOwnerOf(dir: string): Promise<void> {
  const owner = await ownerOf(dir);
  if (owner === null || owner.uid === 0) return;
  // The audit log names who has called the command.
  operatorName();
  setIdentity(owner, dir);
  requireProgram(owner, dir);
}

async function ownerOf(dir: string): Promise<Owner | null> {
  return (await statsOf(dataFolder(dir))) ?? (await statsOf(dir));
}

/** The data folder of the configuration. The command reports what is wrong with that. */
function dataFolder(dir: string): string {
  try {
    return loadConfig({ dir, env: process.env, flags: {} }).dataDir;
  } catch (error) {
    if (error instanceof ConfigError) return dir;
    throw error;
  }
}

async function statsOf(path: string): Promise<Stats | null> {
  return stat(path).catch(() => null);
}

function setIdentity({ uid, gid }: Owner, dir: string): void {
  try {
    setGroups(uid, gid);
    process.setgid?.(gid);
    process.setuid?.(uid);
  } catch {
    throw new Failure(
      `The folder ${dir} belongs to ${describeUser(uid)}, and the system does not let this process of root become that user.`,
      [`Run the command as that user: setpriv --reuid ${uid} --regid ${gid} --clear-groups collab …`],
    );
  }
}

/** Takes the groups of the user, or only the one of the folder if the system knows no such user. */
function setGroups(uid: number, gid: number): void {
  const own: NodeJS.Process & { initgroups?: (user: number, group: number) => void } = process;
  try {
    own.initgroups?.(uid, gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_UNKNOWN_CREDENTIAL') throw error;
    process.setgroups?.([gid]);
  }
}

/** Modules that are imported later, and the workers, are read as the new user. */
function requireProgram({ uid }: Owner, dir: string): void {
  const program = process.argv[1] ?? '';
  for (const path of [process.execPath, program]) {
    try {
      accessSync(path, path === program ? constants.R_OK : constants.X_OK);
      accessSync(dirname(realpathSync(path)), constants.R_OK | constants.X_OK);
    } catch {
      throw new Failure(
        `The folder ${dir} belongs to ${describeUser(uid)}, as whom root runs commands on it; but that user may not read ${path}.`,
        ['Install Node.js and Collab where every user may read them, such as in /opt.'],
      );
    }
  }
}
