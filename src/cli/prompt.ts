import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
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

/**
 * Asks for a new password, twice, without showing what is typed. It is not checked otherwise.
 *
 * @throws {Failure} when the two differ, and without a terminal to ask on
 */
export async function askPassword({ input, output }: Terminal = ours): Promise<string> {
  if (input.isTTY !== true) throw usageFailure('There is no terminal to ask for the password on.', 'Give it with --password <text>.');
  const first = await askUnseen('Password (at least 12 characters): ', { input, output });
  const second = await askUnseen('The same again: ', { input, output });
  if (first !== second) throw new Failure('The two passwords differ. Nothing was changed.');
  return first;
}

/** As `ask`, and nothing that is typed appears: readline writes to nowhere while it believes to write to the terminal. */
async function askUnseen(question: string, { input, output }: Terminal): Promise<string> {
  const unseen = Object.assign(new Writable({ write: (_chunk, _encoding, done) => done() }), { isTTY: true, columns: 80 });
  // The question comes after, when the terminal has stopped echoing by itself.
  const typed = ask('', { input, output: unseen });
  output.write(question);
  await typed;
  output.write('\n');
  return typed;
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
