import type { Test } from 'tap';

const running: { test: Test | null } = { test: null };

/** Makes `test` the one that `import t from 'tap'` stands for in a compiled test file. */
export function setCurrentTest(test: Test): void {
  running.test = test;
}

/**
 * Takes the place of `tap` in compiled test files, where several files share one process: the test of the file that
 * runs now. Files of one process run one after the other, so there is one at any time.
 */
const current = new Proxy({} as Test, {
  get: (_, name) => {
    const { test } = running;
    if (test === null) throw new Error('no test file is running');
    const value: unknown = Reflect.get(test, name, test);
    return typeof value === 'function' ? (value.bind(test) as unknown) : value;
  },
});

export default current;
