import type { Command } from 'commander';

/** The help texts of a command. */
export interface CommandText {
  /** The purpose of the command, in one sentence. */
  readonly summary: string;
  /** More text for its help. */
  readonly details?: string;
  /** Command lines that work when pasted. */
  readonly examples: readonly string[];
}

const examplesByCommand = new WeakMap<Command, readonly string[]>();

/** Adds a command with its help. `name` is in commander's format (`create <slug>`). */
export function addCommand(parent: Command, name: string, { summary, details, examples }: CommandText): Command {
  const command = parent.command(name).summary(summary).description(details === undefined ? summary : `${summary}\n\n${details}`);
  examplesByCommand.set(command, examples);
  return command.addHelpText('after', () => `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`);
}

/** The examples of a command added by `addCommand`. */
export function examplesOf(command: Command): readonly string[] {
  return examplesByCommand.get(command) ?? [];
}

/** Adds a group of commands, such as `env`. Without a command it shows its help. */
export function addGroup(parent: Command, name: string, summary: string): Command {
  return parent.command(name).summary(summary).description(summary);
}
