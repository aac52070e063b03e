import { Option } from 'commander';
import { parseTime } from '../domain/lists/list-query.ts';
import { formatDuration, parseDuration } from '../lib/duration.ts';
import { CollabError } from '../model/errors.ts';
import { usageFailure } from './failure.ts';

/** The bounds of a duration, in seconds. */
export interface DurationBounds {
  readonly min: number;
  readonly max: number;
  /** How to change the bounds, if that is possible. */
  readonly remedy?: string;
}

/**
 * Parses a duration option into seconds.
 *
 * @throws {Failure} naming the option, and the expected format or the bounds
 */
export function durationOption(name: string, text: string, bounds?: DurationBounds): number {
  const seconds = parseDuration(text);
  if (seconds === undefined)
    throw usageFailure(`--${name} must be a duration such as 45s, 30m, 1h or 90d, not "${text}".`);
  if (bounds === undefined || (seconds >= bounds.min && seconds <= bounds.max)) return seconds;
  const { min, max, remedy } = bounds;
  const message = `--${name} must be from ${formatDuration(min)} to ${formatDuration(max)}, not "${text}".`;
  throw remedy === undefined ? usageFailure(message) : usageFailure(message, remedy);
}

/**
 * Parses a whole number option.
 *
 * @throws {Failure} naming the option and its bounds
 */
export function integerOption(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw usageFailure(`--${name} must be a whole number from ${min} to ${max}, not "${text}".`);
  }
  return value;
}

/**
 * Parses an option that names a time: as ISO 8601, or as a duration before `now` (milliseconds since the epoch).
 *
 * @returns ISO 8601 UTC with milliseconds
 * @throws {Failure} naming the option and the expected formats
 */
export function timeOption(name: string, text: string, now: number): string {
  const seconds = parseDuration(text);
  if (seconds !== undefined) return new Date(Math.max(0, now - seconds * 1_000)).toISOString();
  try {
    return parseTime(name, text);
  } catch (error) {
    if (!(error instanceof CollabError)) throw error;
    throw usageFailure(
      `--${name} must be a duration such as 7d, or an ISO 8601 time such as 2025-01-31T12:00:00Z, not "${text}".`,
    );
  }
}

/**
 * An option that accepts one of a fixed set of values. Help, reference and shell completion show them.
 *
 * @param flags in commander's format (`--kind <kind>`)
 */
export function choiceFlag(flags: string, about: string, choices: readonly string[]): Option {
  const option = new Option(flags, about).choices(choices);
  return option.argParser((text) => choiceOption(option.name(), text, choices));
}

/** As `choiceFlag`, for several values, separated by commas. The value of the option is a list. */
export function choicesFlag(flags: string, about: string, choices: readonly string[]): Option {
  const option = new Option(flags, about).choices(choices);
  return option.argParser((text) => listOption(text).map((part) => choiceOption(option.name(), part, choices)));
}

/** As `choiceFlag`, for true and false. The value of the option is a boolean. */
export function booleanFlag(flags: string, about: string): Option {
  const option = new Option(flags, about).choices(['true', 'false']);
  return option.argParser((text) => booleanOption(option.name(), text));
}

function booleanOption(name: string, text: string): boolean {
  if (text !== 'true' && text !== 'false') throw usageFailure(`--${name} must be true or false, not "${text}".`);
  return text === 'true';
}

/**
 * Checks a value of a fixed set. For a whole option, declare a `choiceFlag` instead.
 *
 * @throws {Failure} naming the option and the values it accepts
 */
export function choiceOption<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw usageFailure(`--${name} must be one of ${choices.join(', ')}, not "${text}".`);
  return choice;
}

/**
 * Checks the path of an option or argument. An empty one, such as from an unset variable in a script, would mean the
 * current folder.
 *
 * @throws {Failure} naming the option if it is empty
 */
export function pathArgument(name: string, text: string): string {
  if (text === '') throw usageFailure(`${name} must be a path, but it is empty.`);
  return text;
}

/** Splits a comma-separated option; trims its parts and drops empty ones. */
export function listOption(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
