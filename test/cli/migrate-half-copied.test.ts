import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openPostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { openS3Blobs } from '../../src/adapters/s3/open.ts';
import { S3Server } from '../doubles/s3/server.ts';
import { startCollab } from '../helpers/cli.ts';
import { collab } from '../helpers/command.ts';
import { contentOf } from '../helpers/data-content.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, type Postgres, startPostgres } from '../helpers/engines/postgres.ts';
import { fillFolder, folderContent } from '../helpers/migration.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/**
 * A folder with data, and engines to which a move of it was killed when it had copied some files. `reset` makes all of
 * it so again.
 */
async function halfCopied(t: Test, postgres: Postgres) {
  const [s3, dir] = [await S3Server.start(t), tempFolder(t)];
  const { env, ...blobs } = s3.options;
  const folders = ['from', 'other', 'engines'].map((name) => join(dir, name)) as [string, string, string];
  const [from, other, engines] = folders;
  const url = postgres.createDatabase('target');
  for (const folder of folders) {
    mkdirSync(folder);
    const config = folder === engines ? { store: { url }, blobs } : {};
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 }, ...config }));
  }
  const { environment } = await newFolder(from);
  await newFolder(other);
  await fillFolder(from, environment.id);
  const before = await folderContent(from);
  const running = startCollab(t, ['migrate', '--to', engines, '--dir', from, '--yes'], { env });
  let puts = 0;
  s3.fault = ({ method, key }) => {
    if (method === 'PUT' && key.includes('/file_') && ++puts === 8) running.process.kill('SIGKILL');
    return null;
  };
  await new Promise((resolve) => running.process.once('exit', resolve));
  s3.fault = () => null;
  const names = (): string[] => [...s3.bucket.objects.keys()].filter((key) => key.includes('/file_'));
  t.ok(names().length >= 7 && names().length < 20, `${names().length} of 20 files were copied`);
  const kept = { dir: tempFolder(t), objects: new Map(s3.bucket.objects) };
  cpSync(dir, kept.dir, { recursive: true });
  postgres.sql('create database kept template target');
  const reset = (): void => {
    rmSync(dir, { recursive: true });
    cpSync(kept.dir, dir, { recursive: true });
    postgres.sql('drop database target with (force)');
    postgres.sql('create database target template kept');
    s3.fault = () => null;
    s3.bucket.objects.clear();
    for (const [key, bytes] of kept.objects) s3.bucket.objects.set(key, bytes);
  };
  const move = (source = from) => collab(['migrate', '--to', engines, '--dir', source, '--yes'], { env });
  const isMoved = async (t: Test): Promise<void> => {
    t.match(await move(), { code: 0 });
    const store = await openPostgresStore({ url, connections: 2, name: 'test' });
    const staging = { folder: join(dir, 'staging'), minFreeBytes: 0, partBytes: 5 * 1024 * 1024 };
    const files = await openS3Blobs({ ...s3.options, staging });
    t.strictSame(await contentOf(store, files), before);
    files.close();
    await store.close();
  };
  const sql = (text: string): string => postgres.sql(text, 'target');
  return { s3, env, from, other, engines, names, reset, move, isMoved, sql };
}

t.test('a target on engines that is half copied', { skip: skipWithout(...POSTGRES), timeout: 300_000 }, async (t) => {
  const { s3, env, from, other, engines, names, reset, move, isMoved, sql } = await halfCopied(
    t,
    await startPostgres(t),
  );

  await t.test('is served by nobody and taken by no other source; then the move goes on', async (t) => {
    const refusal = new RegExp(`unfinished|half|${from}`);
    for (const command of [['start', '--port', '0'], ['env', 'list'], ['init'], ['gc'], ['doctor']]) {
      const { code, stdout, stderr } = await collab([...command, '--dir', engines], { env, inside: true });
      t.not(code, 0, command.join(' '));
      t.match(stdout + stderr, refusal, command.join(' '));
    }
    const another = await move(other);
    t.match(another, { code: 2, stderr: /Nothing was written/ });
    t.match(another.stderr, from, 'it says whose it is');
    t.match(await collab(['env', 'list', '--dir', other]), { code: 0 }, 'the other source is as before');
    await isMoved(t);
  });

  await t.test('has what was changed in it meanwhile put right', async (t) => {
    reset();
    sql(`insert into collab.records values ('p/1', 'foreign', 'x', '1'), ('q', 'foreign', 'x', '1');
      insert into collab.partitions values ('q', '1');
      update collab.records set value = '{}' where partition = 'p/2' and key = 'k7';
      delete from collab.records where partition = 'p/3';
      insert into collab.events (stream, seq, text) values ('foreign', 1, 'x');
      insert into collab.streams (stream, last_seq) values ('foreign', 1)`);
    const [lost, changed, longer] = names() as [string, string, string];
    s3.bucket.objects.delete(lost);
    s3.bucket.objects.set(changed, Buffer.alloc(s3.bucket.objects.get(changed)?.length ?? 0, 'x'));
    s3.bucket.objects.set(longer, Buffer.from('longer'.repeat(100_000)));
    await isMoved(t);
  });

  await t.test('is not moved to if another move takes it meanwhile', async (t) => {
    reset();
    s3.fault = ({ method, key }) => {
      if (method === 'PUT' && key.includes('/file_'))
        sql(`update collab.records set value = replace(value, '${from}', '/elsewhere') where partition = 'moves'`);
      return null;
    };
    t.match(await move(), { code: 1, stderr: /is no longer the target of this migration, so nothing was moved/ });
    t.match(await collab(['env', 'list', '--dir', from]), { code: 0 }, 'the source is as before');
  });

  await t.test('is refused while its bucket has the files of somebody else, which stay', async (t) => {
    reset();
    const own = /^(.*\/)(env_\w+)\/file_/.exec(names()[0] ?? '');
    const foreign = `${own?.[1]}env_another0000000000000/file_theirs`;
    s3.bucket.objects.set(foreign, Buffer.from('theirs'));
    t.match(await move(), { code: 2, stderr: /files of env_another0+.*not of this migration/ });
    t.ok(s3.bucket.objects.has(foreign));
    t.match(await collab(['env', 'list', '--dir', from]), { code: 0 }, 'the source is as before');
    s3.bucket.objects.delete(foreign);
    await isMoved(t);
  });
});
