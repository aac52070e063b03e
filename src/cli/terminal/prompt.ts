import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { Failure, usageFailure } from '../failure.ts';
import { Interrupted } from './interruption.ts';

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
 * @throws {Failure} when another answer was given or none (Ctrl-D), and without a terminal to ask on
 * @throws {Interrupted} at Ctrl-C
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
 * @throws {Failure} when the two differ or one is not given (Ctrl-D), and without a terminal to ask on
 * @throws {Interrupted} at Ctrl-C
 */
export async function askPassword({ input, output }: Terminal = ours): Promise<string> {
  if (input.isTTY !== true) throw usageFailure('There is no terminal to ask for the password on.', 'Give it with --password <text>.');
  const first = await askUnseen('Password (at least 12 characters): ', { input, output });
  const second = await askUnseen('The same again: ', { input, output });
  if (first !== second) throw new Failure('The two passwords differ. Nothing was changed.');
  return first;
}

/** As `ask`, and nothing that is typed appears: readline takes the stream that it writes to for the terminal, and nothing reads that. */
async function askUnseen(question: string, { input, output }: Terminal): Promise<string> {
  const unseen = Object.assign(new Writable({ write: (_chunk, _encoding, done) => done() }), { isTTY: true, columns: 80 });
  // The question comes after, when the terminal has stopped echoing by itself.
  const typed = ask('', { input, output: unseen });
  output.write(question);
  try {
    return await typed;
  } finally {
    output.write('\n');
  }
}

/** The line typed. Rejects at Ctrl-C and when the terminal is closed (Ctrl-D); readline alone would wait for ever then. */
async function ask(question: string, terminal: Terminal): Promise<string> {
  const lines = createInterface(terminal);
  const ended = new Promise<never>((_, reject) => {
    lines.once('SIGINT', () => reject(new Interrupted('SIGINT')));
    lines.once('close', () => reject(new Failure('Nothing was changed.')));
  });
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    // Gives the terminal back as it was.
    lines.close();
  }
}
