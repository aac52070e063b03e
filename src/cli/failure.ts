import { StartError } from '../cluster/exit.ts';
import { ConfigError, renderProblem } from '../config/error.ts';
import { CollabError, DataError, type ErrorCode } from '../model/errors.ts';

/** Exit codes of every command: 1 it failed, 2 it was called or configured wrongly. */
export type FailureCode = 1 | 2;

/** Why a command ends without having done its work, in words for an operator. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exitCode: FailureCode;
  /** What to do about it, one sentence or command each. */
  readonly remedies: readonly string[];

  /** @param message what happened and what it means, in whole sentences */
  constructor(message: string, remedies: readonly string[] = [], exitCode: FailureCode = 1) {
    super(message);
    this.remedies = remedies;
    this.exitCode = exitCode;
  }
}

/** A failure because the command was called wrongly: exit code 2. */
export function usageFailure(message: string, ...remedies: readonly string[]): Failure {
  return new Failure(message, remedies, 2);
}

/** What to do about refusals of the domain that a command can meet. */
const remedies: Partial<Record<ErrorCode, string>> = {
  environment_not_found: '`collab env list` shows all environments.',
  environment_disabled: '`collab env update <slug> --disabled false` enables it again.',
  key_not_found: '`collab key list --env <slug>` shows the keys of an environment.',
  user_not_found: '`collab user list --env <slug>` shows the known users.',
  admin_not_found: '`collab admin list` shows all admins.',
  email_taken: '`collab admin password <email>` gives that admin another password.',
  slug_taken: 'Choose another slug, or look at the one there is with `collab env show <slug>`.',
  write_conflict: 'Call the command again.',
  storage_failed: 'Look for errors of the disk in the log of the kernel (dmesg), and whether backups are current.',
  storage_full: 'Free space on the disk of the data folder; `collab doctor` says how much is missing.',
};

/** Anything thrown by a command as the failure that is shown. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof ConfigError) return configFailure(thrown);
  if (thrown instanceof StartError) return new Failure(thrown.message, [], thrown.exitCode === 2 ? 2 : 1);
  if (thrown instanceof DataError) return new Failure(thrown.message, ['`collab doctor` looks at the rest of the folder.']);
  if (thrown instanceof CollabError) return domainFailure(thrown);
  if (isSystemError(thrown) && thrown.syscall === 'mkdir') return folderFailure(thrown);
  if (isSystemError(thrown)) return new Failure(`The system refused: ${thrown.message}.`, systemRemedies(thrown.code));
  const report = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return new Failure(`Something went wrong that should not: this is a fault in Collab.\n${report}`, [
    '`collab doctor` may show the cause. Otherwise please report the lines above.',
  ]);
}

function configFailure(error: ConfigError): Failure {
  const lines = error.problems.map(renderProblem);
  const what = lines.length === 1 ? (lines[0] ?? '') : `The configuration has ${lines.length} faults:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  return usageFailure(what, 'Correct it and call `collab config check`; `collab config example` shows every option.');
}

function domainFailure(error: CollabError): Failure {
  const remedy = remedies[error.code];
  return new Failure(sentence(error.message), remedy === undefined ? [] : [remedy], error.kind.status === 400 ? 2 : 1);
}

function folderFailure({ path, code, message }: NodeJS.ErrnoException & { code: string }): Failure {
  const reason = code === 'ENOENT' ? 'the system refuses to make folders there' : (/: (.*?),/.exec(message)?.[1] ?? code);
  return new Failure(`The folder ${path} cannot be made: ${reason}.`, ['ENOENT', 'ENOTDIR', 'EEXIST'].includes(code) ? ['Name another folder.'] : systemRemedies(code));
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function isSystemError(thrown: unknown): thrown is NodeJS.ErrnoException & { code: string } {
  return thrown instanceof Error && typeof (thrown as NodeJS.ErrnoException).code === 'string' && 'syscall' in thrown;
}

function systemRemedies(code: string): readonly string[] {
  if (code === 'EACCES' || code === 'EPERM') return ['Call it as the user who owns the folder, or give that user the right to write there.'];
  if (code === 'ENOSPC') return ['Free space on that disk.'];
  if (code === 'EROFS') return ['The disk is mounted read-only: choose another folder with --dir.'];
  return ['`collab doctor` may show the cause.'];
}
