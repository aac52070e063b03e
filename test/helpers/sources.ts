import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';

const root = new URL('../../', import.meta.url);

/** Paths of the project's own files from its top, with `/`: what git tracks or would, and what is not deleted. */
export function projectFiles(): string[] {
  const listing = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
  });
  const deleted = execFileSync('git', ['ls-files', '--deleted', '-z'], { cwd: root, encoding: 'utf8' });
  const gone = new Set(deleted.split('\0'));
  return [...new Set(listing.split('\0'))].filter((path) => path !== '' && !gone.has(path)).toSorted();
}

/** The text of a file named by its path from the project's top. */
export function readSource(path: string): string {
  return readFileSync(new URL(path, root), 'utf8');
}

const IMPORT = /^[ \t]*import\s+(type\s)?(?:[^;'"`()]*?\bfrom\s*)?(['"])([^'"\n]+)\2/gm;
const REEXPORT = /^[ \t]*export\s+(type\s)?(?:\*|\{)[^;'"`()]*?\bfrom\s*(['"])([^'"\n]+)\2/gm;
const CALL = /\bimport\s*\(()\s*(['"])([^'"\n]+)\2/g;

export interface Import {
  /** The path from the project's top for a file of ours, otherwise the specifier: `lmdb`, `node:fs`. */
  readonly target: string;
  /** Whether it vanishes when types are stripped. */
  readonly typeOnly: boolean;
}

/** The modules that the module at `path` imports, re-exports or loads later. */
export function importsOf(path: string, text: string): Import[] {
  return [IMPORT, REEXPORT, CALL]
    .flatMap((form) =>
      [...text.matchAll(form)].map((found) => ({ specifier: found[3] ?? '', typeOnly: Boolean(found[1]) })),
    )
    .map(({ specifier, typeOnly }) => ({
      target: specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier,
      typeOnly,
    }));
}

/** Whether a module does nothing but hand on what others export. */
export function isBarrel(text: string): boolean {
  const rest = text
    .replaceAll(REEXPORT, '')
    .replaceAll(/\/\*[^]*?\*\/|\/\/.*$/gm, '')
    .replaceAll(/[\s;]/g, '');
  return rest === '' && text.search(REEXPORT) >= 0;
}
