import type { Config } from '../../config/schema.ts';

/** What one look of `doctor` found. */
export interface Check {
  readonly name: string;
  /** `warn`: it works and will hurt; `fail`: it does not work. */
  readonly level: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** What to do, unless all is well. */
  readonly remedy: string | null;
}

/** The folder that is looked at, and its configuration. */
export interface Subject {
  readonly dir: string;
  readonly config: Config;
}

export const ok = (name: string, finding: string): Check => ({ name, level: 'ok', finding, remedy: null });
export const warn = (name: string, finding: string, remedy: string): Check => ({ name, level: 'warn', finding, remedy });
export const fail = (name: string, finding: string, remedy: string): Check => ({ name, level: 'fail', finding, remedy });

/** The first sentence of anything thrown. */
export function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.split('\n')[0] ?? text;
}
