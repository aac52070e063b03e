import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { initFolder, startCluster, until } from '../helpers/cluster.ts';
import { failingDisk, noFailingDisk } from '../helpers/failing-disk.ts';

const storing = fileURLToPath(new URL('../fixtures/plugins/storing.mjs', import.meta.url));

t.test(
  'while the disk refuses writes, whatever the error, reads go on, and a plugin loses no event',
  { skip: noFailingDisk },
  async (t) => {
    const disk = failingDisk(t, 'data');
    const go = join(disk.folder, 'go');
    const plugins = [{ use: storing, config: { go } }];
    const folder = await initFolder({
      dataDir: join(disk.folder, 'data'),
      shutdown: { closeSpreadSeconds: 0 },
      rateLimit: { perMinute: 100_000 },
      plugins,
    });
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    const server = await startCluster({ folder, workers: 1, env: disk.env });
    t.teardown(() => server.primary.exitCode ?? server.primary.kill('SIGKILL'));
    /**
     * Asks on a new connection, and again if it breaks: lmdb-js may end its process at the first page that cannot be
     * written (disk-gate.ts).
     */
    const ask = async (
      method: string,
      path: string,
      body?: object,
    ): Promise<{ status: number; code: string | null; body: unknown }> => {
      const headers = {
        Authorization: `Bearer ${server.keys.secretKey}`,
        'Content-Type': 'application/json',
        Connection: 'close',
      };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      for (let attempt = 1; ; attempt++) {
        const answer = await fetch(`${server.url}/api/v1${path}`, init).catch((error: unknown) => error);
        if (answer instanceof Response)
          return { status: answer.status, code: answer.headers.get('x-error-code'), body: await answer.json() };
        if (attempt > 200) throw answer;
        await delay(50);
      }
    };
    await ask('PUT', '/users/ann', { name: 'Ann' });
    const created = await ask('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first' });
    const { thread } = created.body as { thread: { id: string } };
    const comments = `/threads/${thread.id}/comments`;
    const stored = async (): Promise<unknown> => (await ask('GET', '/plugins/storing/default/stored')).body;
    const bodies: string[] = [];
    const retries = (): number[] =>
      server
        .log()
        .filter(({ msg }) => String(msg).startsWith('a consumer failed to handle an event'))
        .map(({ attempt }) => Number(attempt));

    for (const [errno, code] of [
      ['EDQUOT', 'storage_full'],
      ['EROFS', 'storage_failed'],
      ['EIO', 'storage_failed'],
    ] as const) {
      rmSync(go, { force: true });
      t.equal((await ask('POST', comments, { userId: 'ann', body: errno })).status, 201);
      const before = retries().length;
      disk.refuse(errno);
      writeFileSync(go, '');
      await until(() => retries().length >= before + 2);
      t.strictSame(new Set(retries()), new Set([1]), 'what the store refuses is no attempt of the plugin');
      await until(async () => (await ask('PATCH', `/threads/${thread.id}`, { resolved: true })).code === code);
      for (const path of ['/rooms', '/rooms/lobby/threads', comments, '/users', '/events'])
        t.match(await ask('GET', path), { status: 200 }, `${errno} ${path}`);
      // No process can start on a file system that is mounted read-only.
      if (errno === 'EIO') {
        const [killed = 0] = server.pids('background');
        process.kill(killed, 'SIGKILL');
        await until(() => retries().length >= before + 3 && !server.pids('background').includes(killed));
      }
      disk.heal();
      bodies.push(errno);
      await until(
        async () => JSON.stringify([...((await stored()) as string[])].sort()) === JSON.stringify([...bodies].sort()),
      );
      await until(async () => (await ask('PATCH', `/threads/${thread.id}`, { resolved: false })).status === 200);
    }
    const events = await ask('GET', '/events?limit=1000');
    const seqs = (events.body as { items: { seq: number }[] }).items.map(({ seq }) => seq);
    t.strictSame(
      seqs,
      Array.from(seqs, (_, i) => i + 1),
      'the log has no gap',
    );
    t.equal((await server.stop()).code, 0);
  },
);
