import { resolve } from 'node:path';

/** A program of `test/fixtures`, as `fork` takes it. */
export interface FixtureProgram {
  /** Options of Node. */
  readonly execArgv: readonly string[];
  readonly path: string;
}

/**
 * The program `test/fixtures/<name>.ts`: compiled, as `npm test` does, or through tsx when a test file runs without it.
 */
export function fixtureProgram(name: string): FixtureProgram {
  const built = process.env['TEST_BUILD'];
  if (built !== undefined)
    return { execArgv: ['--enable-source-maps'], path: resolve(built, `test/fixtures/${name}.js`) };
  return { execArgv: ['--import=tsx'], path: resolve(`test/fixtures/${name}.ts`) };
}

/** The arguments of `node` that run `test/fixtures/<name>.ts`. */
export function fixtureArgs(name: string): string[] {
  const { execArgv, path } = fixtureProgram(name);
  return [...execArgv, path];
}
