import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { version } from '../../src/model/version.ts';
import { readSource } from '../helpers/sources.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('the version is that of package.json', async (t) => {
  t.equal(version, (JSON.parse(readSource('package.json')) as { version: string }).version);
});

t.test(
  'a build names the commit of its checkout, except at the tag of the release',
  { skip: spawnSync('git', ['--version']).error === undefined ? false : 'no git here' },
  async (t) => {
    const { commitOf } = (await import(new URL('../../tools/commit-of.mjs', import.meta.url).href)) as {
      commitOf: (folder: string, version: string) => string | null;
    };
    const folder = tempFolder(t);
    const git = (...args: string[]): string =>
      execFileSync(
        'git',
        ['-c', 'user.name=x', '-c', 'user.email=x@example.com', '-c', 'commit.gpgsign=false', ...args],
        { cwd: folder, encoding: 'utf8' },
      ).trim();
    t.equal(commitOf(folder, '1.2.3'), null, 'no checkout');
    git('init', '--quiet');
    t.equal(commitOf(folder, '1.2.3'), null, 'no commit');
    git('commit', '--quiet', '--allow-empty', '--message', 'Begin');
    git('tag', 'v1.2.2');
    t.equal(commitOf(folder, '1.2.3'), git('rev-parse', 'HEAD').slice(0, 7));
    git('tag', 'v1.2.3');
    t.equal(commitOf(folder, '1.2.3'), null, 'the release');
    mkdirSync(join(folder, 'vendored'));
    t.equal(commitOf(join(folder, 'vendored'), '1.2.4'), null, 'within the repository of something else');
  },
);
