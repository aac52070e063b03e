import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type Cluster,
  collab,
  type Folder,
  initFolder,
  type Keys,
  stablePort,
  startCluster,
  until,
} from '../helpers/cluster.ts';
import { askOnce } from '../helpers/http-client.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { ResumingClient } from '../helpers/resuming-client.ts';
import { uploadSound } from '../helpers/upload.ts';
import { wav } from '../fixtures/media.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

const OPTIONS = {
  storage: { minFreeMb: 0 },
  shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 },
  rateLimit: { exempt: ['127.0.0.1'] },
};
const WRITERS = 2;

/** A folder with a config.json and nothing else. */
function target(t: Test, keys: Keys, config: object = {}): Folder {
  const dir = join(tempFolder(t), 'target');
  mkdirSync(dir);
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ ...OPTIONS, ...config }));
  return { dir, keys };
}

/** Clients of a server at one address, which writes go to and whose events one client follows. */
class Clients {
  readonly answered: { id: string; body: string }[] = [];
  /** Answers to writes that are neither 201 nor 503. */
  readonly strange: string[] = [];
  refused = 0;
  readonly #base: string;
  readonly #keys: Keys;
  readonly #client: ResumingClient;
  #thread = '';
  readonly #stopping = new AbortController();
  #writers: Promise<unknown> = Promise.resolve();

  private constructor(base: string, keys: Keys, token: string) {
    this.#base = base;
    this.#keys = keys;
    this.#client = new ResumingClient({
      url: () => `${base.replace('http', 'ws')}/ws`,
      headers: { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token },
    });
  }

  static async of(t: Test, { url, keys }: Cluster): Promise<Clients> {
    const clients = new Clients(`${url}/api/v1`, keys, await userToken(keys, 'ann'));
    t.teardown(() => clients.stop());
    await clients.send('PUT', '/users/ann', { name: 'Ann' });
    const { thread } = (await clients.send('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first' })).json as {
      thread: { id: string };
    };
    clients.#thread = thread.id;
    await clients.#client.start();
    clients.#writers = Promise.all(Array.from({ length: WRITERS }, (_, n) => clients.#write(n)));
    return clients;
  }

  async send(method: string, path: string, body?: object): Promise<{ status: number; json: unknown; text: string }> {
    const { status, text } = await askOnce(method, this.#base + path, {
      headers: { Authorization: `Bearer ${this.#keys.secretKey}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status, json: text === '' ? undefined : JSON.parse(text), text };
  }

  /** Resolves once so many more writes were answered. */
  async more(count: number): Promise<void> {
    const before = this.answered.length;
    await until(() => this.answered.length >= before + count);
  }

  /** Asserts that everything that was answered is there, and that the follower received each event once. */
  async verify(t: Test): Promise<void> {
    this.#stopping.abort();
    await this.#writers;
    t.strictSame(this.strange, []);
    const found = new Map<string, string>();
    for (let cursor = ''; ;) {
      const page = (await this.send('GET', `/threads/${this.#thread}/comments?limit=100${cursor}`)).json as {
        items: { id: string; body: string }[];
        nextCursor: string | null;
      };
      for (const { id, body } of page.items) found.set(id, body);
      if (page.nextCursor === null || page.nextCursor === undefined) break;
      cursor = `&cursor=${page.nextCursor}`;
    }
    t.strictSame(
      this.answered.filter(({ id, body }) => found.get(id) !== body),
      [],
      `all of ${this.answered.length} answered comments are there`,
    );
    const { seq } = (await this.send('GET', '/events?limit=1')).json as { seq: number };
    await this.#client.reach(seq);
    await this.#client.stop();
    t.equal(this.#client.notRecovered, 0, 'every resume went on where it had ended');
    const [first = 0] = this.#client.seqs;
    t.strictSame(
      this.#client.seqs,
      Array.from({ length: seq - first + 1 }, (_, i) => first + i),
      'no event lost, none doubled',
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#client.stop();
    await this.#writers;
  }

  async #write(writer: number): Promise<void> {
    for (let n = 0; !this.#stopping.signal.aborted; n++) {
      const body = `writer ${writer}, comment ${n}`;
      try {
        const { status, json, text } = await this.send('POST', `/threads/${this.#thread}/comments`, {
          userId: 'ann',
          body,
        });
        if (status === 201) this.answered.push({ id: (json as { comment: { id: string } }).comment.id, body });
        else if (status === 503) this.refused++;
        else this.strange.push(`${status} ${text}`);
      } catch {
        // No server is there at the moment.
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Moves the data of a server that is written to, and starts it at its new place at the same address. */
async function moveServer(t: Test, server: Cluster, clients: Clients, to: Folder): Promise<Cluster> {
  await clients.more(30);
  clients.refused = 0;
  const moved = await collab('migrate', '--to', join(to.dir, 'config.json'), '--dir', server.dir, '--yes', '--json');
  if (moved.code !== 0) throw new Error(moved.stderr);
  const report = JSON.parse(moved.stdout) as { records: number };
  t.match(report, { outcome: 'moved', files: { count: 1 }, faults: { missing: [], damaged: [] } });
  t.ok(report.records > 60);
  await until(() => clients.refused > 0);
  const answered = clients.answered.length;
  t.match(await clients.send('GET', '/rooms'), { status: 200 }, 'the old server goes on with reads');
  t.equal(clients.answered.length, answered, 'and confirms nothing any more');
  await server.stop();
  return startCluster({ workers: 1, folder: to, port: server.port });
}

t.test(
  'a server moves from its folder to PostgreSQL and back while clients write and follow',
  { skip: skipWithout(...POSTGRES), timeout: 400_000 },
  async (t) => {
    const postgres = await startPostgres(t);
    const folder = await initFolder(OPTIONS);
    t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
    let server = await startCluster({ workers: 1, folder, port: await stablePort() });
    t.teardown(() => server.kill());
    const clients = await Clients.of(t, server);
    const token = await userToken(folder.keys, 'ann');
    const file = await uploadSound(server, folder.keys, token);
    const nodes = target(t, folder.keys, { store: { url: postgres.url } });

    const prepared = await collab('migrate', '--to', nodes.dir, '--dir', folder.dir, '--prepare', '--json');
    if (prepared.code !== 0) throw new Error(prepared.stderr);
    t.match(JSON.parse(prepared.stdout), { outcome: 'prepared', stoppedMs: null });
    const early = await collab('start', '--dir', nodes.dir, '--port', '0');
    t.match(early, { code: 2, stderr: /PostgreSQL at .* has an unfinished migration from the folder / });
    t.equal(clients.refused, 0);

    server = await moveServer(t, server, clients, nodes);
    const late = await collab('start', '--dir', folder.dir, '--port', '0', '--workers', '1');
    t.match(late, { code: 2, stderr: /was moved to PostgreSQL at .*collab migrate --undo/ });
    await clients.more(30);
    server = await moveServer(t, server, clients, target(t, folder.keys));
    await clients.more(30);
    await clients.verify(t);
    const kept = await fetch(new URL(file.url, server.url), {
      headers: { 'X-Service-Key': folder.keys.publishableKey, 'X-Service-Token': token },
    });
    t.strictSame(Buffer.from(await kept.arrayBuffer()), wav(0.1), 'the file is there');
    t.equal(postgres.sql(`select count(*) from collab.records where partition = 'moves'`), '1');
  },
);
