import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** A new folder of the system's temporary ones, removed after the test. */
export function tempFolder(t: Pick<Test, 'teardown'>): string {
  const dir = mkdtempSync(join(tmpdir(), 'collab-test-'));
  // Workers of a server that was killed may write for a moment.
  t.teardown(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return dir;
}
