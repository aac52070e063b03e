import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ensureFolder, writeDurably } from '../../src/lib/files/durable-files.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a folder is created with its parents, for its owner only, and may exist already', async (t) => {
  const path = join(tempFolder(t), 'a', 'b', 'c');
  const created = await Promise.all([ensureFolder(path), ensureFolder(path)]);
  t.strictSame(
    created.flat().toSorted(),
    [join(path, '..', '..'), join(path, '..'), path],
    'each is created by one of them',
  );
  t.strictSame(await ensureFolder(path), []);
  t.strictSame(await ensureFolder(join(path, 'd', 'e')), [join(path, 'd'), join(path, 'd', 'e')], 'parents come first');
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
  await ensureFolder('/');
});

t.test('calls at the same time for folders with the same missing parents all succeed', async (t) => {
  const folder = tempFolder(t);
  for (let round = 0; round < 200; round += 1) {
    const parent = join(folder, String(round), 'b', 'c');
    const paths = [join(parent, 'd'), parent, join(parent, 'e'), join(parent, 'd')];
    const created = (await Promise.all(paths.map(ensureFolder))).flat();
    if (created.length !== 5 || new Set(created).size !== 5) t.fail(`round ${round}: ${created.join(' ')}`);
  }
  t.equal(readdirSync(folder).length, 200);
});

t.test(
  'a folder that cannot be created is reported at once',
  { skip: existsSync('/proc/self') ? false : 'no /proc here' },
  async (t) => {
    const folder = tempFolder(t);
    await t.rejects(ensureFolder('/proc/x'), { code: 'ENOENT' });
    await t.rejects(ensureFolder('/proc/x/y'), { code: 'ENOENT' });
    writeFileSync(join(folder, 'file'), '');
    await t.rejects(ensureFolder(join(folder, 'file')), { code: 'EEXIST' });
    await t.rejects(ensureFolder(join(folder, 'file', 'below')), { code: 'ENOTDIR' });
    symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
    await t.rejects(ensureFolder(join(folder, 'link')), { code: 'EEXIST' });
  },
);

t.test('a file is replaced as a whole, and a failed write leaves no file behind', async (t) => {
  const folder = tempFolder(t);
  const file = join(folder, 'file');
  await writeDurably(file, 'one');
  await writeDurably(file, 'two');
  t.equal(readFileSync(file, 'utf8'), 'two');
  t.equal(statSync(file).mode & 0o777, 0o600);
  await t.rejects(writeDurably(folder, 'three'), { code: 'EISDIR' });
  t.strictSame(readdirSync(folder), ['file']);
});
