import asyncHooks from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';

/**
 * Keeps tap from following every promise and every timer of this process to the test that made it, which took half of
 * the processor time of tests that run in this process. An error that nobody catches therefore ends the process: the
 * test that runs fails, and the files after it run in another process. To be called before tap is imported.
 */
export function doWithoutDomains(): void {
  const none: asyncHooks.AsyncHook = { enable: () => none, disable: () => none };
  asyncHooks.createHook = () => none;
  let last = 0;
  // Never the same id, or tap would find the domain of some test, whatever runs.
  asyncHooks.executionAsyncId = () => ++last;
  syncBuiltinESMExports();
}
