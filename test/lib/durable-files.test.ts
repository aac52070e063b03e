import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ensureFolder, writeDurably } from '../../src/lib/durable-files.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a folder is made with those above it, for its owner alone, and may be there already', async (t) => {
  const path = join(tempFolder(t), 'a', 'b', 'c');
  await Promise.all([ensureFolder(path), ensureFolder(path)]);
  await ensureFolder(path);
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
  await ensureFolder('/');
});

t.test('where a folder cannot be made, this is said at once', { skip: existsSync('/proc/self') ? false : 'there is no /proc' }, async (t) => {
  const folder = tempFolder(t);
  await t.rejects(ensureFolder('/proc/x'), { code: 'ENOENT' });
  await t.rejects(ensureFolder('/proc/x/y'), { code: 'ENOENT' });
  writeFileSync(join(folder, 'file'), '');
  await t.rejects(ensureFolder(join(folder, 'file')), { code: 'EEXIST' });
  await t.rejects(ensureFolder(join(folder, 'file', 'below')), { code: 'ENOTDIR' });
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
  await t.rejects(ensureFolder(join(folder, 'link')), { code: 'EEXIST' });
});

t.test('a file is replaced whole, and one that cannot be placed leaves nothing behind', async (t) => {
  const folder = tempFolder(t);
  const file = join(folder, 'file');
  await writeDurably(file, 'one');
  await writeDurably(file, 'two');
  t.equal(readFileSync(file, 'utf8'), 'two');
  t.equal(statSync(file).mode & 0o777, 0o600);
  await t.rejects(writeDurably(folder, 'three'), { code: 'EISDIR' });
  t.strictSame(readdirSync(folder), ['file']);
});
