import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let root: string | null = null;

/** Sets the folder for all data of this run; its disk is the one that is measured. */
export function useDataRoot(parent: string = tmpdir()): string {
  root = mkdtempSync(join(parent, 'collab-bench-'));
  process.once('exit', () => rmSync(root!, { recursive: true, force: true }));
  return root;
}

/** Creates an empty folder, which is removed when the run ends. */
export function newFolder(name: string): string {
  if (root === null) throw new Error('useDataRoot comes first');
  return mkdtempSync(join(root, `${name}-`));
}
