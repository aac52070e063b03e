import output from 'node:console';
import { messageOf } from '../../../lib/thrown.ts';

let isQuiet = false;

/**
 * Keeps lmdb-js 3.5.6 from printing the cause of a failed commit, with a stack, to standard error (`startWriting` in
 * its write.js). The transaction rejects with it, and its caller reports it. Idempotent.
 *
 * Its native code prints a line as well (`Write error: …`), which nothing here can keep from it.
 */
export function quietFailures(): void {
  if (isQuiet) return;
  isQuiet = true;
  const print = output.error.bind(output);
  output.error = (...values: unknown[]) => {
    const [thrown] = values;
    if (values.length > 1 || !isOfLmdb(thrown)) return print(...values);
    // Ends the line that the native code has begun.
    if (/Attempting to write page/.test(messageOf(thrown))) print('');
  };
}

/** Its errors have a number as `code`; those of Node.js have a name. */
function isOfLmdb(value: unknown): boolean {
  return value instanceof Error && typeof (value as { code?: unknown }).code === 'number';
}
