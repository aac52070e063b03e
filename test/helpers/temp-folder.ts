import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** A new folder of the system's temporary ones, removed after the test. */
export function tempFolder(t: Pick<Test, 'teardown'>): string {
  return folderIn(t, tmpdir());
}

/** A new folder in memory where there is one, for many files of which no test depends on a disk; as `tempFolder`. */
export function memoryFolder(t: Pick<Test, 'teardown'>): string {
  return folderIn(t, process.env['TEST_MEMORY'] ?? tmpdir());
}

function folderIn(t: Pick<Test, 'teardown'>, parent: string): string {
  const dir = mkdtempSync(join(parent, 'collab-test-'));
  // Workers of a server that was killed may write for a moment.
  t.teardown(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return dir;
}
