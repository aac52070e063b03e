import { Command, CommanderError } from 'commander';
import { version } from '../model/version.ts';
import { pathArgument } from './command.ts';
import { asFailure, type Failure } from './failure.ts';
import { Interrupted } from './terminal/interruption.ts';
import { note, renderFailure } from './terminal/output.ts';

type Register = (program: Command) => void;

/**
 * The commands, each in a module of its own that is loaded only when its name is called: `start` must not wait for
 * what only others need.
 */
const modules: Readonly<Record<string, () => Promise<Register>>> = {
  init: async () => (await import('./commands/init.ts')).register,
  start: async () => (await import('./commands/start.ts')).register,
  status: async () => (await import('./commands/status.ts')).register,
  doctor: async () => (await import('./doctor/doctor.ts')).register,
  config: async () => (await import('./commands/config.ts')).register,
  env: async () => (await import('./commands/env.ts')).register,
  key: async () => (await import('./commands/key.ts')).register,
  user: async () => (await import('./commands/user.ts')).register,
  token: async () => (await import('./commands/token.ts')).register,
  admin: async () => (await import('./commands/admin.ts')).register,
  tail: async () => (await import('./commands/tail.ts')).register,
  backup: async () => (await import('./backup/backup.ts')).register,
  restore: async () => (await import('./backup/restore.ts')).register,
  export: async () => (await import('./commands/export.ts')).register,
  import: async () => (await import('./commands/import.ts')).register,
  gc: async () => (await import('./commands/gc.ts')).register,
  openapi: async () => (await import('./commands/openapi.ts')).register,
};

/** The exit code that shells show for a program whose reader has gone away: 128 and the number of SIGPIPE. */
const CLOSED_OUTPUT = 141;

/**
 * Runs one command line.
 *
 * @param argv what stands after the program's name
 * @returns the exit code: 0 as intended, 1 it failed, 2 it was called or configured wrongly, 130 or 143 a signal ended it,
 *   141 nobody reads its output any more. Everything to be printed has been printed.
 */
export async function runCli(argv: readonly string[]): Promise<number> {
  const output = watchOutput();
  try {
    const program = await createProgram(argv);
    await program.parseAsync([...argv], { from: 'user' });
    // A server goes on without its output, and has set its exit code; for anything else the output is the work.
    return Number(process.exitCode ?? (await output.failed()));
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return isClosedPipe(error) ? CLOSED_OUTPUT : report(error);
  }
}

/** Prints why a command failed, and returns its exit code. */
function report(error: unknown): number {
  const failure: Failure = asFailure(error);
  note(renderFailure(failure));
  return failure.exitCode;
}

/** The program with the commands that `argv` may mean: those it names, or all when it names none. */
export async function createProgram(argv: readonly string[]): Promise<Command> {
  const program = new Command('collab')
    .description('Self-hosted comments: threads pinned to a page, live in every browser.')
    .version(version, '-v, --version', 'Print the version.')
    .helpOption('-h, --help', 'Show help.')
    .helpCommand('help [command]', 'Show help of a command.')
    .option('--dir <folder>', 'Folder of config.json and the data (default: the current one if it holds a config.json, else ./collab).', pathOption)
    .option('--json', 'Print one JSON document.')
    .configureHelp({ showGlobalOptions: true, helpWidth: 100 })
    .showHelpAfterError('(add --help to see how it is called)')
    .exitOverride()
    .addHelpText('after', '\nStart here:\n  $ collab start --demo\n\nEvery command has --help with examples.');
  const named = Object.keys(modules).filter((name) => argv.includes(name));
  for (const name of named.length > 0 ? named : Object.keys(modules)) {
    const register = await modules[name]?.();
    register?.(program);
  }
  return program;
}

function pathOption(text: string): string {
  return pathArgument('--dir', text);
}

/** Keeps a failed write to standard output or standard error from ending the process. */
function watchOutput(): { failed(): Promise<number> } {
  let first: Error | undefined;
  process.stdout.on('error', (error) => (first ??= error));
  process.stderr.on('error', () => {});
  return {
    /** The exit code after all that was printed: 0, or that of the first write to standard output that failed. */
    async failed() {
      await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
      if (first === undefined) return 0;
      return isClosedPipe(first) ? CLOSED_OUTPUT : report(first);
    },
  };
}

/** Whether a write failed because the reader of the pipe, such as `head`, has closed it. */
function isClosedPipe(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EPIPE';
}
