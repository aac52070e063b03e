import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { Failure, usageFailure } from '../failure.ts';
import { InterruptedError } from './interruption.ts';

/** A destructive action that needs a confirmation. */
export interface ConfirmationPrompt {
  /** A sentence about the loss: `This deletes the environment staging with all its threads.` */
  readonly warning: string;
  /** The text that the user has to type to confirm. */
  readonly answer: string;
  /** Whether --yes was given. */
  readonly yes: boolean;
}

/** Where to ask. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Asks on standard error, so that standard output contains only the result. */
const standardTerminal: Terminal = { input: process.stdin, output: process.stderr };

/**
 * Asks for the confirmation of a destructive action. Resolves once it is confirmed, or at once if `yes` is set.
 *
 * @throws {Failure} on another answer or none (Ctrl-D), and if there is no terminal
 * @throws {InterruptedError} on Ctrl-C
 */
export async function confirmDestruction(
  { warning, answer, yes }: ConfirmationPrompt,
  { input, output }: Terminal = standardTerminal,
): Promise<void> {
  if (yes) return;
  if (input.isTTY !== true) {
    throw usageFailure(
      `${warning} It needs a confirmation, but there is no terminal to ask on. Nothing was changed.`,
      'Add --yes to confirm.',
    );
  }
  const given = await ask(`${warning}\nType ${answer} to continue: `, { input, output });
  if (given.trim() !== answer) throw new Failure('Nothing was changed.');
}

/**
 * Asks for a new password twice, without echo. Does not check the password itself.
 *
 * @throws {Failure} if the two differ or one is missing (Ctrl-D), and if there is no terminal
 * @throws {InterruptedError} on Ctrl-C
 */
export async function askPassword({ input, output }: Terminal = standardTerminal): Promise<string> {
  if (input.isTTY !== true)
    throw usageFailure(
      'A password is required, but there is no terminal to ask for it.',
      'Pass it with --password <text>.',
    );
  const first = await askHidden('Password (at least 12 characters): ', { input, output });
  const second = await askHidden('Repeat the password: ', { input, output });
  if (first !== second) throw new Failure('The two passwords differ. Nothing was changed.');
  return first;
}

/** As `ask`, without echo: readline echoes to a stream that nothing reads. */
async function askHidden(question: string, { input, output }: Terminal): Promise<string> {
  const sink = Object.assign(new Writable({ write: (_chunk, _encoding, done) => done() }), {
    isTTY: true,
    columns: 80,
  });
  // Written after readline has turned off the terminal's own echo.
  const typed = ask('', { input, output: sink });
  output.write(question);
  try {
    return await typed;
  } finally {
    output.write('\n');
  }
}

/** Asks for a line. Rejects on Ctrl-C and when the input ends (Ctrl-D), where readline alone would wait forever. */
async function ask(question: string, terminal: Terminal): Promise<string> {
  const lines = createInterface(terminal);
  const ended = new Promise<never>((_, reject) => {
    lines.once('SIGINT', () => reject(new InterruptedError('SIGINT')));
    lines.once('close', () => reject(new Failure('Nothing was changed.')));
  });
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    // Restores the mode of the terminal.
    lines.close();
  }
}
