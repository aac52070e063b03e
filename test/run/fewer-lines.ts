import type { TestBase } from 'tap';

/** What of the options of an assertion makes its line worth reading. */
interface Extra {
  readonly skip?: unknown;
  readonly todo?: unknown;
}

/**
 * Lets each test print the first of its assertions that hold, and none after it: tap makes, prints and parses a line of
 * TAP for each, at every level of nesting, a tenth of the processor time of tests with many assertions. What fails or is
 * skipped is printed, and an assertion after the end of its test fails as ever.
 *
 * @param tests what all tests of tap inherit from
 */
export function printFewerLines(tests: TestBase): void {
  const print = tests.pass;
  const begun = new WeakSet<TestBase>();
  /** The function that a test calls now, from which a failure takes its place in the source. */
  const asserting = new WeakMap<TestBase, unknown>();
  Object.defineProperty(tests, 'currentAssert', {
    // tap reads it once for each line, and forgets it then.
    get(this: TestBase) {
      const found = asserting.get(this);
      asserting.delete(this);
      return found;
    },
    set(this: TestBase, called: unknown) {
      if (!asserting.has(this)) asserting.set(this, called);
    },
  });
  tests.pass = function pass(this: TestBase, ...args): boolean {
    const { skip, todo }: Extra = (typeof args[0] === 'object' ? args[0] : args[1]) ?? {};
    const isTold = Boolean(skip) || Boolean(todo);
    if (begun.has(this) && !this.ended && !isTold) {
      asserting.delete(this);
      return true;
    }
    begun.add(this);
    return print.apply(this, args);
  };
}
