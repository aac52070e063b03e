import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { initFolder, startCluster } from '../helpers/cluster.ts';

t.test(
  'workers leave their code cache in the data folder, use it at the next start, and replace a damaged one',
  async (t) => {
    const folder = await initFolder({}, { own: true });
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    const caches = join(folder.dir, 'data/cache');
    const versions = (): number[] =>
      readdirSync(caches)
        .sort()
        .map((name) => statSync(join(caches, name)).ino);
    /** Starts a server, asks it something and stops it. */
    const runServer = async (): Promise<void> => {
      const server = await startCluster({ folder, workers: 1 });
      t.equal((await fetch(`${server.url}/readyz`)).status, 200);
      t.equal((await server.stop()).code, 0);
      t.strictSame(
        server.log().filter(({ level }) => level === 'error' || level === 'fatal'),
        [],
      );
    };

    await runServer();
    t.strictSame(readdirSync(caches).sort(), ['background.bin', 'web.bin']);
    const first = versions();
    await runServer();
    t.strictSame(versions(), first, 'the caches were used');
    const damaged = readdirSync(caches).map((name) => {
      const path = join(caches, name);
      const content = readFileSync(path);
      content[content.length >> 1] = (content[content.length >> 1] ?? 0) ^ 1;
      writeFileSync(path, content);
      return { path, content };
    });
    await runServer();
    for (const { path, content } of damaged) t.notOk(readFileSync(path).equals(content), `${path} was replaced`);
  },
);
