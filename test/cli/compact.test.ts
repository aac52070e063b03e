import { statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collab, collabJson, startServer } from '../helpers/cli.ts';
import { until } from '../helpers/cluster.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const MB = 1024 * 1024;

t.test(
  'a store most of whose file is free is compacted by the next start, and by a command while no server runs',
  async (t) => {
    const dir = tempFolder(t);
    await newFolder(dir);
    const file = join(dir, 'data', 'store', 'data.mdb');
    const size = (): number => statSync(file).size;
    // LMDB extends its file in advance in the same way.
    truncateSync(file, 300 * MB);

    const server = await startServer(t, dir, ['--workers', '1']);
    t.ok(size() < 10 * MB, `the start has made the file ${size()} bytes long`);
    await until(() => server.errors().includes('"outcome":"compacted"'));
    t.equal((await fetch(`${server.url}/readyz`)).status, 200);
    const refused = await collab(['compact', '--dir', dir]);
    t.equal(refused.code, 1);
    t.match(refused.stderr, /A server is running on .*, so nothing was changed/);
    t.equal(await server.end(), 0);

    truncateSync(file, 20 * MB);
    const { before, after } = await collabJson<{ before: number; after: number }>(t, ['compact', '--dir', dir]);
    t.equal(before, 20 * MB);
    t.equal(after, size());
    t.ok(after < MB);
    t.match((await collab(['compact', '--dir', dir])).stdout, /^The store’s file had \d+ kB and now has \d+ kB\.$/m);
    t.match((await collab(['env', 'list', '--dir', dir])).stdout, /default/);
    t.match((await collab(['compact', '--dir', join(dir, 'none')])).code, 1);
  },
);
