import { get } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { startCluster, until } from '../helpers/cluster.ts';
import { collabJson } from '../helpers/command.ts';
import { type Connection, connectToBoth } from '../helpers/connections.ts';
import { TestSocket } from '../helpers/socket.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

const API = '/api/v1';

interface Stream {
  readonly worker: string;
  text: string;
  ended: boolean;
  readonly close: () => void;
}

t.test(
  'an environment is deleted and imported while a server is running: every worker follows its new stream, and lists are fresh',
  async (t) => {
    const server = await startCluster({
      config: { rateLimit: { exempt: ['127.0.0.1'] }, shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 } },
    });
    t.teardown(() => server.kill());
    const run = (...args: string[]): Promise<object> => collabJson(t, [...args, '--dir', server.dir]);

    /** Opens event streams until each worker has one. */
    const follow = async (): Promise<Stream[]> => {
      const found = new Map<string, Stream>();
      while (found.size < 2) {
        const stream = await open();
        if (found.has(stream.worker)) stream.close();
        else found.set(stream.worker, stream);
      }
      return [...found.values()];
    };
    const open = (): Promise<Stream> =>
      new Promise((resolve, reject) => {
        const headers = { Authorization: `Bearer ${server.keys.secretKey}`, Accept: 'text/event-stream' };
        const sent = get(`${server.url}${API}/events`, { headers, agent: false }, (answer) => {
          const id = String(answer.headers['x-request-id']);
          const stream: Stream = {
            worker: id.slice(0, id.lastIndexOf('-')),
            text: '',
            ended: false,
            close: () => sent.destroy(),
          };
          t.teardown(() => sent.destroy());
          answer.setEncoding('utf8').on('data', (chunk: string) => (stream.text += chunk));
          answer.on('close', () => (stream.ended = true)).on('error', () => undefined);
          void until(() => stream.text.includes('event: welcome') || answer.statusCode !== 200).then(() =>
            answer.statusCode === 200 ? resolve(stream) : reject(new Error(`${answer.statusCode} ${stream.text}`)),
          );
        });
        sent.once('error', reject);
      });
    const openSocket = async (search = ''): Promise<TestSocket> => {
      const token = await userToken(server.keys, 'ann');
      const socket = new TestSocket(`${server.url.replace('http', 'ws')}${API}/ws${search}`, {
        headers: { 'X-Service-Key': server.keys.publishableKey, 'X-Service-Token': token },
      });
      t.teardown(() => socket.terminate());
      await socket.frame('welcome');
      return socket;
    };
    const write = async (connection: Connection, body: string): Promise<void> => {
      const { status, body: answer } = await connection.send('POST', `${API}/rooms/lobby/threads`, {
        body: { userId: 'ann', body },
      });
      if (status !== 201) t.fail(`${status} ${answer}`);
    };
    const epochOf = ({ text }: Stream): string =>
      (JSON.parse(/event: welcome\nid: .*\ndata: (.*)\n/.exec(text)?.[1] ?? '{}') as { epoch: string }).epoch;

    const workers = await connectToBoth(server, 1);
    t.teardown(() => workers.forEach(({ close }) => close()));
    const [one, two] = workers as [Connection, Connection];
    await one.send('PUT', `${API}/users/ann`, { body: { name: 'Ann' } });
    for (let n = 0; n < 20; n++) await write(n % 2 === 0 ? one : two, `before ${n}`);
    const before = await follow();
    const socket = await openSocket();
    const tags = await Promise.all(
      workers.map(async ({ send }) => String((await send('GET', `${API}/rooms/lobby/threads`)).headers['etag'])),
    );

    const file = join(tempFolder(t), 'all.ndjson');
    await run('export', file, '--with-secrets');
    await run('env', 'delete', 'default', '--yes');
    await until(() => before.every(({ ended }) => ended));
    t.pass('the streams of the deleted environment end at once');
    t.strictSame((await socket.closed).code, 4403, 'and its sockets');
    await run('import', file);

    const after = await follow();
    t.equal(
      new Set([...before, ...after].map(epochOf)).size,
      2,
      'every worker names the new stream, and not as the old one',
    );
    const [old] = before.map(epochOf);
    const resumed = await openSocket(`?epoch=${old}&since=1`);
    t.match(await resumed.frame('welcome'), { data: { recovered: false, seq: 0 } });
    for (let n = 0; n < 3; n++) await write(one, `after ${n}`);
    await until(() =>
      after.every(({ text }) => ['after 0', 'after 1', 'after 2'].every((body) => text.includes(body))),
    );
    t.pass('the streams of both workers have what one has written');
    await until(() => resumed.seqs.length >= 3);
    t.strictSame(resumed.seqs.slice(-3), [1, 2, 3]);
    for (const [index, { send }] of workers.entries()) {
      const list = await send('GET', `${API}/rooms/lobby/threads`, { headers: { 'If-None-Match': tags[index] ?? '' } });
      t.equal(list.status, 200, 'a tag of before is not good any more');
      t.equal((JSON.parse(list.body) as { items: unknown[] }).items.length, 23);
    }
    const { seq, oldestSeq } = JSON.parse((await two.send('GET', `${API}/events?since=0`)).body) as {
      seq: number;
      oldestSeq: number;
    };
    t.strictSame([seq, oldestSeq], [3, 1]);
    [...before, ...after].forEach(({ close }) => close());
  },
);
