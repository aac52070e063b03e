/** Where a value came from, in words: `config.json`, `the variable COLLAB_PORT`, `the flag --port`. */
export type Source = string;

export interface Problem {
  /** Path of the option, or '' when the whole source is at fault. */
  readonly path: string;
  /** What is wrong, without the path: `must be a whole number from 0 to 65535, not "http"`. */
  readonly reason: string;
  readonly source: Source;
}

/** The configuration cannot be used. Carries every problem found, not the first alone. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(renderProblem).join('\n'));
    this.problems = problems;
  }
}

/** A problem as one line: `port must be a whole number from 0 to 65535, not "http" (in the variable COLLAB_PORT)`. */
export function renderProblem({ path, reason, source }: Problem): string {
  return `${path === '' ? '' : `${path} `}${reason} (in ${source})`;
}
