import { Command, CommanderError } from 'commander';
import { buildVersion } from './build-version.ts';
import { namedCommand, usesFolder } from './command.ts';
import { givenFolder } from './shared/given-folder.ts';
import { chooseFolder, invocationOf } from './shared/invocation.ts';
import { pathArgument } from './option-values.ts';
import { asFailure, asUncaughtFailure, crashFailure, Failure } from './failure.ts';
import { InterruptedError } from './terminal/interruption.ts';
import { announceCrash } from './terminal/crash-notice.ts';
import { failureJson, printNote, renderFailure } from './terminal/output.ts';

type Register = (program: Command) => void;

/**
 * The commands. Each is in a module that is loaded only when the command is called, so that `start` does not wait for
 * modules that only other commands need.
 */
const modules: Readonly<Record<string, () => Promise<Register>>> = {
  init: async () => (await import('./commands/server/init.ts')).register,
  start: async () => (await import('./commands/server/start.ts')).register,
  status: async () => (await import('./commands/server/status.ts')).register,
  doctor: async () => (await import('./doctor/doctor.ts')).register,
  config: async () => (await import('./commands/server/config.ts')).register,
  env: async () => (await import('./commands/environments/env.ts')).register,
  key: async () => (await import('./commands/environments/key.ts')).register,
  user: async () => (await import('./commands/content/user.ts')).register,
  room: async () => (await import('./commands/content/room.ts')).register,
  thread: async () => (await import('./commands/content/thread.ts')).register,
  comment: async () => (await import('./commands/content/comment.ts')).register,
  upload: async () => (await import('./commands/content/upload.ts')).register,
  notify: async () => (await import('./commands/content/notify.ts')).register,
  token: async () => (await import('./commands/environments/token.ts')).register,
  admin: async () => (await import('./commands/environments/admin.ts')).register,
  moderation: async () => (await import('./commands/content/moderation.ts')).register,
  audit: async () => (await import('./commands/environments/audit.ts')).register,
  tail: async () => (await import('./commands/server/tail.ts')).register,
  backup: async () => (await import('./backup/backup.ts')).register,
  restore: async () => (await import('./backup/restore.ts')).register,
  export: async () => (await import('./commands/environments/export.ts')).register,
  import: async () => (await import('./commands/environments/import.ts')).register,
  migrate: async () => (await import('./migrate/migrate.ts')).register,
  plugin: async () => (await import('./commands/plugins/plugin.ts')).register,
  gc: async () => (await import('./commands/server/gc.ts')).register,
  compact: async () => (await import('./commands/server/compact.ts')).register,
  openapi: async () => (await import('./commands/server/openapi.ts')).register,
  completion: async () => (await import('./completion/completion.ts')).register,
  version: async () => (await import('./commands/server/version.ts')).register,
};

/** The exit code that shells show for a program whose output pipe was closed: 128 plus the number of SIGPIPE. */
const CLOSED_OUTPUT = 141;

/**
 * Runs one command line.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 success, 1 failure, 2 wrong call or configuration, 3 the server is stopped (`status`), 130
 *   or 143 ended by a signal, 141 the reader of its output is gone. All output has been written.
 */
export async function runCli(argv: readonly string[]): Promise<number> {
  const output = watchOutput(argv);
  let program: Command | undefined;
  let endNotice = (): void => {};
  const onUse = (dir: string): void => {
    endNotice = announceCrash(failureText(argv, crashFailure(dir)));
  };
  // What the store throws when it can neither be read nor written any more (decision 18).
  process.once('uncaughtException', (error) => process.exit(report(argv, asUncaughtFailure(error))));
  try {
    program = await createProgram(argv, onUse);
    await program.parseAsync([...argv], { from: 'user' });
    // A server keeps running without its output, and has set its exit code. Other commands have failed if their output
    // failed.
    return Number(process.exitCode ?? (await output.exitCode()));
  } catch (error) {
    if (error instanceof InterruptedError) return error.exitCode;
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : reportUsage(argv, error, program);
    return isClosedPipe(error) ? CLOSED_OUTPUT : report(argv, error, program);
  } finally {
    endNotice();
  }
}

/** Prints why a command failed. Returns its exit code. */
function report(argv: readonly string[], error: unknown, program?: Command): number {
  const failure = withUsage(asFailure(error), argv, program);
  printNote(failureText(argv, failure));
  return failure.exitCode;
}

function failureText(argv: readonly string[], failure: Failure): string {
  return asksJson(argv) ? failureJson(failure) : renderFailure(failure);
}

/** Adds to a wrong call without remedies where its usage is shown. */
function withUsage(failure: Failure, argv: readonly string[], program: Command | undefined): Failure {
  const { message, remedies, exitCode, code } = failure;
  if (
    program === undefined ||
    exitCode !== 2 ||
    code === 'start_failed' ||
    code.startsWith('engine_') ||
    remedies.length > 0
  )
    return failure;
  const words = namedCommand(program, argv);
  const remedy =
    words.length === 0
      ? '`collab --help` lists the commands.'
      : `\`collab ${words.join(' ')} --help\` shows its usage.`;
  return new Failure(message, [remedy], exitCode, code);
}

/**
 * Reports a command line that commander has refused. Without a command it has printed the help, but not as JSON.
 * Returns the exit code.
 */
function reportUsage(argv: readonly string[], { code, message }: CommanderError, program: Command | undefined): number {
  if (code !== 'commander.help') return report(argv, new Failure(message.replace(/^error: /, ''), [], 2), program);
  return asksJson(argv) ? report(argv, new Failure('A command is missing.', [], 2), program) : 2;
}

/** Whether the command line has --json. */
function asksJson(argv: readonly string[]): boolean {
  const ends = argv.indexOf('--');
  return (ends < 0 ? argv : argv.slice(0, ends)).includes('--json');
}

/**
 * Creates the program with the commands that `argv` names, or with all commands if it names none.
 *
 * @param onUse called before a command that may open the store of a folder
 */
export async function createProgram(
  argv: readonly string[],
  onUse: (dir: string) => void = () => {},
): Promise<Command> {
  const program = new Command('collab')
    .description('Self-hosted comments: threads pinned to a page, live in every browser.')
    .version(buildVersion, '-v, --version', 'Print the version.')
    .helpOption('-h, --help', 'Show help.')
    .helpCommand('help [command]', 'Show help for a command.')
    .option(
      '--dir <folder>',
      'Folder of config.json and the data (default: the variable COLLAB_DIR, else the current folder if it ' +
        'contains a config.json, else ./collab).',
      pathOption,
    )
    .option('--json', 'Print one JSON document.')
    .configureHelp({ showGlobalOptions: true, helpWidth: 100 })
    .configureOutput({ outputError: () => {}, ...(asksJson(argv) && { writeErr: () => {} }) })
    .exitOverride()
    .hook('preAction', (_program, command) => prepare(command, onUse))
    .addHelpText(
      'after',
      '\nTo get started:\n  $ collab start --demo\n\nEvery command shows examples with --help.\n\nPlugins ' +
        'add commands, such as webhook, email and web-push: `collab plugin list` shows them.',
    );
  // The modules of all commands take half a second to load.
  if (argv.length === 1 && (argv[0] === '-v' || argv[0] === '--version')) return program;
  const first = firstWord(argv);
  // Completions are of all commands.
  const named = first === 'completion' ? [] : Object.keys(modules).filter((name) => argv.includes(name));
  if (first !== undefined && first !== 'help' && !Object.hasOwn(modules, first)) {
    await becomeOwner(chooseFolder(givenFolder(argv)));
    const { namedPlugin } = await import('./commands/plugins/named-plugin.ts');
    const plugin = await namedPlugin(first, argv);
    if (plugin !== undefined) {
      const { registerPluginCommands } = await import('./commands/plugins/plugin-commands.ts');
      await registerPluginCommands(program, plugin);
      return program;
    }
  }
  for (const name of named.length > 0 ? named : Object.keys(modules)) {
    const register = await modules[name]?.();
    register?.(program);
  }
  if (first === 'completion') {
    await becomeOwner(chooseFolder(givenFolder(argv)));
    const [{ knownPlugins }, { registerAllPluginCommands }] = await Promise.all([
      import('./commands/plugins/named-plugin.ts'),
      import('./commands/plugins/plugin-commands.ts'),
    ]);
    await registerAllPluginCommands(program, knownPlugins(argv));
  }
  return program;
}

/** Runs before the action of each command. */
async function prepare(command: Command, onUse: (dir: string) => void): Promise<void> {
  if (!usesFolder(command)) return;
  const { dir } = invocationOf(command);
  await becomeOwner(dir);
  // A server opens the store in its workers, whose end the primary reports.
  if (command.name() !== 'start') onUse(dir);
}

/**
 * Before code of the plugins that a folder names is loaded, too: it is that of the owner of the folder, and not of
 * root.
 */
async function becomeOwner(dir: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { becomeOwnerOf } = await import('./shared/folder-owner.ts');
  await becomeOwnerOf(dir);
}

/** The first argument that is no option, nor the value of --dir. */
function firstWord(argv: readonly string[]): string | undefined {
  return argv.find((argument, index) => !argument.startsWith('-') && argv[index - 1] !== '--dir');
}

function pathOption(text: string): string {
  return pathArgument('--dir', text);
}

/** Prevents a failed write to standard output or standard error from ending the process. */
function watchOutput(argv: readonly string[]): { exitCode(): Promise<number> } {
  let first: Error | undefined;
  process.stdout.on('error', (error) => (first ??= error));
  process.stderr.on('error', () => {});
  return {
    /** Waits until all output is written. Returns 0, or the exit code for the first failed write to standard output. */
    async exitCode() {
      await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
      if (first === undefined) return 0;
      return isClosedPipe(first) ? CLOSED_OUTPUT : report(argv, first);
    },
  };
}

/** Whether a write failed because the reader of the pipe, such as `head`, has closed it. */
function isClosedPipe(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EPIPE';
}
