/**
 * Test files that `npm test` runs only with `--all`, as `.ci/run` does, or when they are named: those that take long and
 * whose subject the other files touch, too. The value says where.
 */
export const LONG_TESTS: Readonly<Record<string, string>> = {
  'test/cluster/nodes-crash.test.ts': 'x',
};
