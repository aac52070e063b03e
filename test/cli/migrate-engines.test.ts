import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openPostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { openS3Blobs } from '../../src/adapters/s3/open.ts';
import { S3Server } from '../doubles/s3/server.ts';
import { collab } from '../helpers/command.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { contentOf } from '../helpers/data-content.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { fillFolder, folderContent, moveUnderKills } from '../helpers/migration.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const KILLS = 2 * CRASH_FACTOR;

t.test(
  'a move to PostgreSQL and S3 and one back go on where they were killed, and keep records, epoch, positions and files',
  { skip: skipWithout(...POSTGRES), timeout: CRASH_FACTOR * 200_000 },
  async (t) => {
    const [postgres, s3, dir] = [await startPostgres(t), await S3Server.start(t), tempFolder(t)];
    const { env, ...bucket } = s3.options;
    const [from, engines, back] = ['from', 'engines', 'back'].map((name) => join(dir, name)) as [
      string,
      string,
      string,
    ];
    const configs = { [from]: {}, [engines]: { store: { url: postgres.url }, blobs: bucket }, [back]: {} };
    for (const [folder, config] of Object.entries(configs)) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 }, ...config }));
    }
    await fillFolder(from, (await newFolder(from)).environment.id);
    const before = await folderContent(from);

    const hasMeta = (): boolean => postgres.sql(`select to_regclass('collab.meta')`) !== '';
    const move = { env, kills: KILLS, withinMs: 3_000 };
    const killed = await moveUnderKills(t, { ...move, from, to: engines, hasBegun: hasMeta });
    t.ok(killed > 0, `${killed} kills on the way to the engines`);
    const store = await openPostgresStore({ url: postgres.url, connections: 2, name: 'test' });
    const staging = { folder: join(dir, 'staging'), minFreeBytes: 0, partBytes: 5 * 1024 * 1024 };
    const blobs = await openS3Blobs({ ...s3.options, staging });
    t.strictSame(await contentOf(store, blobs), before);
    blobs.close();
    await store.close();

    const killedBack = await moveUnderKills(t, {
      ...move,
      from: engines,
      to: back,
      hasBegun: () => readdirSync(back).includes('data'),
    });
    t.ok(killedBack > 0, `${killedBack} kills on the way back`);
    t.strictSame(await folderContent(back), before);
    t.match(await collab(['env', 'list', '--dir', engines], { env }), { code: 2, stderr: /was moved to/ });
  },
);

t.test(
  'a move from PostgreSQL says that all nodes are to be stopped',
  { skip: skipWithout(...POSTGRES) },
  async (t) => {
    const [postgres, dir] = [await startPostgres(t), tempFolder(t)];
    const [from, to] = [join(dir, 'from'), join(dir, 'to')];
    for (const [folder, config] of [
      [from, { store: { url: postgres.url } }],
      [to, {}],
    ] as const) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 }, ...config }));
    }
    t.match(await collab(['init', '--dir', from]), { code: 0 });
    t.match(await collab(['migrate', '--to', to, '--dir', from, '--yes']), {
      code: 0,
      stdout: /All nodes of the old server refuse writes now: stop them/,
    });
  },
);
