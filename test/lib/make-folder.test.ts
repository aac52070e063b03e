import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { makeFolder, makeFolderSync } from '../../src/lib/files/make-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a folder is made with its missing parents, readable by its owner only', async (t) => {
  const root = tempFolder(t);
  t.equal(await makeFolder(join(root, 'a/b/c')), join(root, 'a'), 'the first one that was missing');
  t.equal(await makeFolder(join(root, 'a/b/c')), undefined);
  makeFolderSync(join(root, 'd/e'));
  makeFolderSync(join(root, 'd/e'));
  for (const name of ['a', 'a/b/c', 'd', 'd/e']) t.equal(statSync(join(root, name)).mode & 0o777, 0o700, name);
});

t.test('a folder that cannot be made is refused with the error of the operating system, and at once', async (t) => {
  const file = join(tempFolder(t), 'file');
  writeFileSync(file, '');
  for (const [path, code] of [
    [file, 'EEXIST'],
    [join(file, 'x'), 'ENOTDIR'],
    ...(process.platform === 'linux' ? [['/proc/x/y', 'ENOENT']] : []),
  ] as [string, string][]) {
    await t.rejects(makeFolder(path), { code, syscall: 'mkdir' }, path);
    t.throws(() => makeFolderSync(path), { code, syscall: 'mkdir' }, path);
  }
});
