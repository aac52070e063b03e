import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';

/** What the command line of `npm test` says. */
export interface RunOptions {
  /** Files and folders of tests; all that are not long when empty. */
  readonly paths: readonly string[];
  /** Run the long tests, too, if no paths say what runs. */
  readonly all: boolean;
  /** Processes side by side. */
  readonly jobs: number;
  /** Processes side by side at most, while cores are idle. */
  readonly mostJobs: number;
  /** How often everything runs, until something fails. */
  readonly repeat: number;
  /** Seconds that one file may take. */
  readonly timeoutS: number;
  /** Where the names of the files that failed go, a line each. */
  readonly save: string | undefined;
  /** A file with the names of the files to run, a line each, as `save` leaves it. */
  readonly only: string | undefined;
  /** Print TAP as the processes print it. */
  readonly tap: boolean;
}

export const USAGE = `npm test -- [file or folder …] [--all] [--jobs N] [--most-jobs N] [--repeat N] [--timeout SECONDS] [--save FILE] [--only FILE] [--tap]`;

/** @throws {TypeError} for an option that there is not, or a number that is none */
export function parseOptions(args: readonly string[]): RunOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      all: { type: 'boolean', default: false },
      jobs: { type: 'string' },
      'most-jobs': { type: 'string' },
      repeat: { type: 'string', default: '1' },
      timeout: { type: 'string', default: '600' },
      save: { type: 'string' },
      only: { type: 'string' },
      tap: { type: 'boolean', default: false },
    },
  });
  const whole = (name: 'jobs' | 'most-jobs' | 'repeat' | 'timeout', byDefault = 0): number => {
    const value = Number(values[name] ?? byDefault);
    if (!Number.isInteger(value) || value < 1)
      throw new TypeError(`--${name} must be an integer from 1, not ${values[name]}`);
    return value;
  };
  // Files of real processes wait for more than half of their time, many of them at once now and then.
  const jobs = whole('jobs', 2 * availableParallelism());
  return {
    paths: positionals,
    all: values.all,
    jobs,
    mostJobs: whole('most-jobs', values.jobs === undefined ? 2 * jobs : jobs),
    repeat: whole('repeat'),
    timeoutS: whole('timeout'),
    save: values.save,
    only: values.only,
    tap: values.tap,
  };
}
