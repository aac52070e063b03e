import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { tempFolder } from './temp-folder.ts';

/** A disk that can be made to fail, for processes that are started with `env`. */
export interface FailingDisk {
  /** An empty folder, to make the data folder in. */
  readonly folder: string;
  /** The variables that preload test/fixtures/eio.c. */
  readonly env: Readonly<Record<string, string>>;
  /** Fails the next call of a kind, once, with EIO; test/fixtures/eio.c has the kinds. */
  failOnce(call: string): void;
  /** Whether the call of `failOnce` has failed. */
  hasFailed(): boolean;
  /** Fails all that writes with an error such as `EDQUOT`, after so many milliseconds, until `heal`. */
  refuse(errno: keyof typeof constants.errno, afterMs?: number): void;
  /** Fails calls, until `heal`. */
  failCalls(failure: FailingCalls): void;
  /** How many calls `failCalls` has made fail, in all. */
  failedCalls(): number;
  heal(): void;
}

/** Which calls fail. */
export interface FailingCalls {
  /** Tells one such failure from the next. */
  readonly id: number;
  /** Named as in `man 2`, or `any`. */
  readonly call: string;
  /** Or `kill`: the process is killed before the call. */
  readonly errno: keyof typeof constants.errno | 'kill';
  /** So many calls of each process succeed before. */
  readonly skip: number;
  /** So many fail; 0: all; below 0: each with a chance of 1 to -times. */
  readonly times: number;
}

/** As EIO_FLAG of test/fixtures/eio.c has it. */
export function caseOf({ id, call, errno, skip, times }: FailingCalls): string {
  return `case ${call} ${errno === 'kill' ? 0 : constants.errno[errno]} ${skip} ${times} ${id}`;
}

/** Why there can be no failing disk here; false when there can. */
export const noFailingDisk: string | false = (() => {
  if (process.platform !== 'linux') return 'needs Linux';
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'gcc is not installed';
  }
})();

/** The compiled test/fixtures/eio.c, which the disks of this process share. */
let compiled: string | undefined;

function compile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'collab-test-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const library = join(folder, 'eio.so');
  execFileSync('gcc', ['-shared', '-fPIC', '-o', library, 'test/fixtures/eio.c', '-ldl']);
  return library;
}

/** @param path what fails, below the folder of the disk: a file or folder */
export function failingDisk(t: Test, path: string): FailingDisk {
  const folder = realpathSync(tempFolder(t));
  const flag = join(folder, 'flag');
  const library = (compiled ??= compile());
  return {
    folder,
    env: { LD_PRELOAD: library, EIO_FILE: join(folder, path), EIO_FLAG: flag },
    failOnce: (call) => writeFileSync(flag, call),
    hasFailed: () => !existsSync(flag),
    refuse: (errno, afterMs = 0) => writeFileSync(flag, `all ${constants.errno[errno]} ${afterMs}`),
    failCalls: (failure) => writeFileSync(flag, caseOf(failure)),
    failedCalls: () => statSync(`${flag}.hits`, { throwIfNoEntry: false })?.size ?? 0,
    heal: () => rmSync(flag, { force: true }),
  };
}
