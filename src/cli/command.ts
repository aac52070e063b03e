import type { Command } from 'commander';
import { parseDuration } from '../lib/duration.ts';
import { usageFailure } from './failure.ts';

export interface CommandText {
  /** One sentence on what it does. */
  readonly summary: string;
  /** More, for its help, where one sentence is not enough. */
  readonly details?: string;
  /** Calls that work when pasted. */
  readonly examples: readonly string[];
}

const examplesByCommand = new WeakMap<Command, readonly string[]>();

/** Adds a command, `name` as commander takes it (`create <slug>`), with its help. */
export function addCommand(parent: Command, name: string, { summary, details, examples }: CommandText): Command {
  const command = parent.command(name).summary(summary).description(details === undefined ? summary : `${summary}\n\n${details}`);
  examplesByCommand.set(command, examples);
  return command.addHelpText('after', () => `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`);
}

/** The examples of a command that `addCommand` made. */
export function examplesOf(command: Command): readonly string[] {
  return examplesByCommand.get(command) ?? [];
}

/** Adds a group of commands, such as `env`. Called without a command, it shows its help. */
export function addGroup(parent: Command, name: string, summary: string): Command {
  return parent.command(name).summary(summary).description(summary);
}

/**
 * The seconds of an option's duration.
 *
 * @throws {Failure} naming the option and the form expected
 */
export function durationOption(name: string, text: string): number {
  const seconds = parseDuration(text);
  if (seconds === undefined) throw usageFailure(`--${name} must be a duration such as 45s, 30m, 1h or 90d, not "${text}".`);
  return seconds;
}

/**
 * The whole number of an option.
 *
 * @throws {Failure} naming the option and its bounds
 */
export function wholeOption(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw usageFailure(`--${name} must be a whole number from ${least} to ${most}, not "${text}".`);
  }
  return value;
}

/**
 * The boolean of an option.
 *
 * @throws {Failure} naming the option
 */
export function booleanOption(name: string, text: string): boolean {
  if (text !== 'true' && text !== 'false') throw usageFailure(`--${name} must be true or false, not "${text}".`);
  return text === 'true';
}

/**
 * The choice of an option.
 *
 * @throws {Failure} naming the option and what it accepts
 */
export function choiceOption<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw usageFailure(`--${name} must be one of ${choices.join(', ')}, not "${text}".`);
  return choice;
}

/**
 * The path of an option or argument. An empty one, such as an unset variable of a script gives, would mean the current folder.
 *
 * @throws {Failure} naming the option when it is empty
 */
export function pathArgument(name: string, text: string): string {
  if (text === '') throw usageFailure(`${name} must name a path: it is empty.`);
  return text;
}

/** The parts of a comma-separated option, without spaces and empty ones. */
export function listOption(text: string): string[] {
  return text.split(',').map((part) => part.trim()).filter((part) => part !== '');
}
