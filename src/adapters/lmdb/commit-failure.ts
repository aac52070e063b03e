import type { RootDatabase } from 'lmdb';

/** How long the cause of a failed commit may take to come after it; it comes in the same turn. */
const CAUSE_MS = 1_000;

/**
 * Makes transactions of a database reject with what went wrong, such as a full disk. By itself lmdb rejects with an error
 * that says nothing and has a promise of the cause, `commitError`; where nobody waits for that one, it ends the process.
 */
export function explainFailures(root: RootDatabase): void {
  const transaction = root.transaction.bind(root);
  root.transaction = async <T>(action: () => T): Promise<T> => {
    try {
      return await transaction(action);
    } catch (error) {
      throw await causeOf(error);
    }
  };
}

/**
 * Whether a failure says that the disk is full. LMDB calls it an input/output error when only some of its pages still
 * fitted.
 */
export function isFullDisk(error: unknown): boolean {
  return /ENOSPC|No space left|MDB_MAP_FULL|Input\/output error/i.test(error instanceof Error ? error.message : String(error));
}

async function causeOf(error: unknown): Promise<unknown> {
  if (!(error instanceof Error) || !('commitError' in error) || !(error.commitError instanceof Promise)) return error;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<unknown>((resolve) => (timer = setTimeout(resolve, CAUSE_MS, error)));
  const cause = error.commitError.then(() => error, (reason: unknown) => reason);
  return Promise.race([cause, late]).finally(() => clearTimeout(timer));
}
