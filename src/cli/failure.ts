import { StartError } from '../cluster/exit.ts';
import { ConfigError, renderProblem } from '../config/error.ts';
import { isDiskError, isLimitError, systemErrorOf } from '../lib/errno.ts';
import { actsForRoot } from './shared/operator.ts';
import { type AccessDenial, accessDenialOf } from '../lib/files/access-denial.ts';
import { messageOf } from '../lib/thrown.ts';
import { EngineError } from '../ports/engine-error.ts';
import { CollabError, DataError, type ErrorCode } from '../model/errors.ts';

/** Exit codes of failed commands: 1 for a failure, 2 for a wrong call or configuration. */
export type FailureCode = 1 | 2;

/** The reason why a command failed, for the operator. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exitCode: FailureCode;
  /** The kind of the failure, for scripts: a code of docs/errors.md, or one of docs/cli.md. */
  readonly code: string;
  /**
   * Remedies for the operator, one sentence or command each. Commands are in backticks: they are printed with the --dir
   * of this call.
   */
  readonly remedies: readonly string[];

  /**
   * @param message what happened and what it means, in full sentences
   * @param code `usage` or `failed`, by the exit code, when absent
   */
  constructor(
    message: string,
    remedies: readonly string[] = [],
    exitCode: FailureCode = 1,
    code = exitCode === 2 ? 'usage' : 'failed',
  ) {
    super(message);
    this.remedies = remedies;
    this.exitCode = exitCode;
    this.code = code;
  }
}

/** The code of errors that the operating system reports. */
const SYSTEM = 'system_error';

/** A failure with exit code 2, because the command was called wrongly. */
export function usageFailure(message: string, ...remedies: readonly string[]): Failure {
  return new Failure(message, remedies, 2);
}

/** Remedies for errors of the domain that commands can get. */
const remedies: Partial<Record<ErrorCode, string>> = {
  environment_not_found: '`collab env list` lists all environments.',
  environment_disabled: '`collab env update <slug> --disabled false` enables it again.',
  key_not_found: '`collab key list --env <slug>` lists the keys of an environment.',
  room_not_found: '`collab room list --env <slug>` lists the rooms of an environment.',
  thread_not_found:
    'It may have been deleted, or belong to another environment. `collab thread list <roomId> --env <slug>` lists the threads of a room.',
  file_not_found: '`collab upload list --env <slug>` lists the uploads of an environment.',
  comment_not_found:
    'It may have been deleted, which also removes its notifications, or belong to another environment: `collab env list` lists all.',
  unknown_user: '`collab user add <id> --env <slug>` adds a user.',
  quota_exceeded: '`collab env update <slug> --quotas <name>=<n>` changes a quota.',
  user_not_found: '`collab user list --env <slug>` lists the known users.',
  admin_not_found: '`collab admin list` lists all admins.',
  email_taken: '`collab admin password <email>` changes the password of that admin.',
  slug_taken: 'Choose another slug. `collab env show <slug>` shows the existing environment.',
  write_conflict: 'Run the command again.',
  storage_failed: 'Check the kernel log (dmesg) for disk errors, and check that your backups are recent.',
  storage_unavailable: 'Check that the servers of store.url, shared.url and blobs.url can be reached: `collab doctor`.',
  storage_full: 'Free space on the disk of the data folder; `collab doctor` shows how much is needed.',
};

/** Converts anything thrown by a command into the failure to show. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof ConfigError) return configFailure(thrown);
  if (thrown instanceof StartError)
    return new Failure(thrown.message, [], thrown.exitCode === 2 ? 2 : 1, 'start_failed');
  if (thrown instanceof EngineError) return engineFailure(thrown);
  if (thrown instanceof DataError) return dataFailure(thrown);
  if (thrown instanceof CollabError) return domainFailure(thrown);
  const denial = accessDenialOf(thrown);
  if (denial !== null) return accessFailure(denial, SYSTEM);
  if (isSystemError(thrown) && thrown.syscall === 'mkdir') return folderFailure(thrown);
  if (isSystemError(thrown))
    return new Failure(
      `The operating system reported an error: ${messageOf(thrown)}.`,
      systemRemedies(thrown),
      1,
      SYSTEM,
    );
  const system = systemErrorOf(thrown);
  // LMDB's has a number as its code, and neither call nor file.
  if (system !== null && isLimitError(system))
    return new Failure(
      `The operating system reported an error: ${system.meaning} (${system.name}).`,
      limitRemedies(system.name),
      1,
      SYSTEM,
    );
  return bugFailure(thrown);
}

/**
 * `asFailure` for what nothing has caught: an error of the operating system that is not one of a file, such as that of
 * a socket, is a bug then, whose stack is needed.
 */
export function asUncaughtFailure(thrown: unknown): Failure {
  const system = systemErrorOf(thrown);
  const isOfFile = system !== null && isDiskError(system) && (thrown as NodeJS.ErrnoException).path !== undefined;
  return isSystemError(thrown) && !isOfFile ? bugFailure(thrown) : asFailure(thrown);
}

/** The failure of a command that used the folder `dir` and was ended by a signal. */
export function crashFailure(dir: string): Failure {
  return new Failure(
    `A signal ended this command (SIGSEGV, SIGBUS, SIGABRT or SIGKILL) while it used ${dir}. Often a disk ` +
      'that fails or is full has caused that, or a lack of memory.',
    [
      'Look at the kernel log (dmesg), then run the command again.',
      '`collab doctor` finds out whether the files can be read.',
    ],
    1,
    'ended_by_signal',
  );
}

function bugFailure(thrown: unknown): Failure {
  const report = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return new Failure(
    `An unexpected error occurred. This is a bug in Collab.\n${report}`,
    ['`collab doctor` may show the cause. If not, please report the lines above.'],
    1,
    'internal',
  );
}

function configFailure(error: ConfigError): Failure {
  const lines = error.problems.map(renderProblem);
  const message =
    lines.length === 1
      ? (lines[0] ?? '')
      : `The configuration has ${lines.length} problems:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  return new Failure(
    message,
    ['Correct it, then run `collab config check`. `collab config example` shows every option.'],
    2,
    'invalid_configuration',
  );
}

function engineFailure({ message, retry }: EngineError): Failure {
  return new Failure(
    sentence(message),
    retry ? ['Run the command again when it can be reached.'] : [],
    2,
    retry ? 'engine_unreachable' : 'engine_refused',
  );
}

function dataFailure({ message, remedy }: DataError): Failure {
  if (remedy !== null) return new Failure(message, [remedy], 1, 'store_not_usable');
  return new Failure(
    message,
    ['`collab doctor` checks the rest of the folder.', '`collab restore <backup>` restores a backup.'],
    1,
    'data_damaged',
  );
}

function domainFailure(error: CollabError): Failure {
  const { cause, path } = error as CollabError & { path?: string };
  const denial = accessDenialOf(error);
  if (denial !== null) return accessFailure(denial, error.code);
  const disk = systemErrorOf(cause);
  if (disk !== null && path !== undefined) {
    return new Failure(
      `${path} cannot be ${actionOf(cause)}: ${disk.meaning} (${disk.name}).`,
      diskRemedies(disk.name),
      1,
      error.code,
    );
  }
  const remedy = remedies[error.code];
  return new Failure(
    sentence(error.message),
    remedy === undefined ? [] : [remedy],
    error.kind.status === 400 ? 2 : 1,
    error.code,
  );
}

/** What a call on a file was to do with it. */
function actionOf(cause: unknown): string {
  const { syscall } = cause as NodeJS.ErrnoException;
  return syscall === 'open' ? 'opened' : syscall === 'read' ? 'read' : 'written';
}

function accessFailure({ message, remedy }: AccessDenial, code: string): Failure {
  const remedies = [remedy];
  if (actsForRoot()) {
    const own = `${process.getuid?.()}:${process.getgid?.()}`;
    remedies.push(
      'As root, commands run as the owner of the folder, so that the server can use what they write. To let ' +
        `that user use a path: chown -R ${own} <path>`,
    );
  }
  return new Failure(message, remedies, 1, code);
}

function folderFailure(error: NodeJS.ErrnoException & { code: string }): Failure {
  const { name, meaning } = systemErrorOf(error) ?? { name: error.code, meaning: error.code };
  const reason = name === 'ENOENT' ? 'the system does not allow folders there' : `${meaning} (${name})`;
  return new Failure(
    `The folder ${error.path} cannot be created: ${reason}.`,
    ['ENOENT', 'ENOTDIR', 'EEXIST'].includes(name) ? ['Choose another folder.'] : systemRemedies(error),
    1,
    SYSTEM,
  );
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function isSystemError(thrown: unknown): thrown is NodeJS.ErrnoException & { code: string } {
  return thrown instanceof Error && typeof (thrown as NodeJS.ErrnoException).code === 'string' && 'syscall' in thrown;
}

function systemRemedies(error: NodeJS.ErrnoException): readonly string[] {
  const name = systemErrorOf(error)?.name ?? error.code;
  if (name === 'ENOENT') return ['Check the path: the file or folder does not exist.'];
  return name !== undefined && isLimitError({ name, meaning: '' }) ? limitRemedies(name) : diskRemedies(name);
}

function limitRemedies(name: string): readonly string[] {
  if (name === 'ENOMEM') return ['Free memory, or end other programs, then run the command again.'];
  if (name === 'EMFILE' || name === 'ENFILE')
    return ['Raise the number of files that may be open (ulimit -n), then run the command again.'];
  return ['Run the command again.'];
}

function diskRemedies(name: string | undefined): readonly string[] {
  if (name === 'EACCES' || name === 'EPERM')
    return ['Run the command as the owner of the folder, or give this user write permission.'];
  if (name === 'ENOSPC') return ['Free space on that disk.'];
  if (name === 'EDQUOT') return ['Free space that counts for this quota, or raise it (`quota`, `repquota` show it).'];
  if (name === 'EROFS')
    return [
      'The file system is mounted read-only, maybe after an error: see the kernel log (dmesg), then mount ' +
        'it for writing or choose another path.',
    ];
  if (name === 'EIO')
    return ['Check the kernel log (dmesg) for errors of the disk, and check that your backups are recent.'];
  return ['`collab doctor` may show the cause.'];
}
