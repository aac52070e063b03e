import type { Command } from 'commander';

/** The help texts of a command. */
export interface CommandText {
  /** The purpose of the command, in one sentence. */
  readonly summary: string;
  /** More text for its help. */
  readonly details?: string;
  /** Command lines that work when pasted. */
  readonly examples: readonly string[];
  /**
   * False if it uses no Collab folder; true if absent. Root runs the others as the owner of the folder (decision 67).
   */
  readonly usesFolder?: boolean;
}

const examplesByCommand = new WeakMap<Command, readonly string[]>();
const withoutFolder = new WeakSet<Command>();

/** Adds a command with its help. `name` is in commander's format (`create <slug>`). */
export function addCommand(
  parent: Command,
  name: string,
  { summary, details, examples, usesFolder = true }: CommandText,
): Command {
  const command = parent
    .command(name)
    .summary(summary)
    .description(details === undefined ? summary : `${summary}\n\n${details}`);
  examplesByCommand.set(command, examples);
  if (!usesFolder) withoutFolder.add(command);
  return command.addHelpText('after', () => `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`);
}

/** The examples of a command added by `addCommand`. */
export function examplesOf(command: Command): readonly string[] {
  return examplesByCommand.get(command) ?? [];
}

/** Whether a command uses the Collab folder. */
export function usesFolder(command: Command): boolean {
  return !withoutFolder.has(command);
}

/** Adds a group of commands, such as `env`. Without a command it shows its help. */
export function addGroup(parent: Command, name: string, summary: string): Command {
  return parent.command(name).summary(summary).description(summary);
}

/**
 * The words of the command that a command line names, without options; empty if it names none. A group counts as one.
 */
export function namedCommand(program: Command, argv: readonly string[]): string[] {
  const words: string[] = [];
  let command = program;
  for (const [index, word] of argv.entries()) {
    const inner =
      argv[index - 1] === '--dir' ? undefined : command.commands.find((candidate) => candidate.name() === word);
    if (inner === undefined) continue;
    words.push(word);
    command = inner;
  }
  return words;
}
