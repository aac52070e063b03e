import type { Config } from '../../config/schema.ts';

/** The result of one check of `doctor`. */
export interface Check {
  readonly name: string;
  /** `warn`: it works, but is likely to cause a problem; `fail`: it does not work. */
  readonly level: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** The remedy, with commands in backticks; null if the level is `ok`. */
  readonly remedy: string | null;
}

/** The folder to check, and its configuration. */
export interface CheckedFolder {
  readonly dir: string;
  readonly config: Config;
}

/** A check that passed. */
export const ok = (name: string, finding: string): Check => ({ name, level: 'ok', finding, remedy: null });
/** A check that found a likely problem. */
export const warn = (name: string, finding: string, remedy: string): Check => ({
  name,
  level: 'warn',
  finding,
  remedy,
});
/** A check that failed. */
export const fail = (name: string, finding: string, remedy: string): Check => ({
  name,
  level: 'fail',
  finding,
  remedy,
});
