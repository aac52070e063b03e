import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The commit of a checkout, abbreviated, for the version of what is built from it. Null at the tag of the release, and
 * for a folder that is no checkout or that git cannot read.
 *
 * @param {string} folder
 * @param {string} version that of package.json
 * @returns {string | null}
 */
export function commitOf(folder, version) {
  // Sources within the repository of something else are not that.
  if (!existsSync(join(folder, '.git'))) return null;
  /** @param {string[]} args */
  const git = (...args) =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const tags = git('tag', '--points-at', 'HEAD').split('\n');
    return tags.includes(`v${version}`) ? null : git('rev-parse', '--short=7', 'HEAD');
  } catch {
    return null;
  }
}
