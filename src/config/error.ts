/** Where a value was set, in words: `config.json`, `the variable COLLAB_PORT`, `the flag --port`. */
export type Source = string;

/** One fault of a configuration. */
export interface Problem {
  /** Path of the option, or '' if the whole source is faulty. */
  readonly path: string;
  /** The fault, without the path: `must be a whole number from 0 to 65535, not "http"`. */
  readonly reason: string;
  readonly source: Source;
}

/** The configuration is invalid. Carries all problems found. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(renderProblem).join('\n'));
    this.problems = problems;
  }
}

/**
 * Formats a problem as one line: `port must be a whole number from 0 to 65535, not "http" (in the variable
 * COLLAB_PORT)`.
 */
export function renderProblem({ path, reason, source }: Problem): string {
  return `${path === '' ? '' : `${path} `}${reason} (in ${source})`;
}
