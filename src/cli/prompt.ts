import { createInterface } from 'node:readline/promises';
import { Failure, usageFailure } from './failure.ts';

export interface Destruction {
  /** What will be gone, as a sentence: `This deletes the environment staging with all its threads.` */
  readonly warning: string;
  /** What has to be typed to go ahead. */
  readonly answer: string;
  /** Whether --yes was given. */
  readonly yes: boolean;
}

/** Where to ask. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Standard error, so that standard output holds the result alone. */
const ours: Terminal = { input: process.stdin, output: process.stderr };

/**
 * Asks before something is destroyed. Returns when the answer was given or `yes` is set.
 *
 * @throws {Failure} when another answer was given, and without a terminal to ask on
 */
export async function confirmDestruction({ warning, answer, yes }: Destruction, { input, output }: Terminal = ours): Promise<void> {
  if (yes) return;
  if (input.isTTY !== true) {
    throw usageFailure(`${warning} There is no terminal to ask on, so nothing was done.`, 'Add --yes to do it without being asked.');
  }
  const given = await ask(`${warning}\nType ${answer} to go ahead: `, { input, output });
  if (given.trim() !== answer) throw new Failure('Nothing was changed.');
}

/** The line typed; empty when the terminal was closed (Ctrl-D, Ctrl-C) instead, which readline would wait on for ever. */
async function ask(question: string, terminal: Terminal): Promise<string> {
  const lines = createInterface(terminal);
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), closed]);
  } finally {
    lines.close();
  }
}
