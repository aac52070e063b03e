import t from 'tap';
import { CollabError } from '../../src/client/errors.ts';
import type { RoomSnapshot } from '../../src/client/room/snapshot.ts';
import type { CollabSession } from '../../src/client/session/session.ts';
import { nameOf } from '../../src/client/shared/identity.ts';
import { ReplayBuffer } from '../../src/client/shared/replay-buffer.ts';
import { sharedSocketsOf } from '../../src/client/shared-socket.ts';
import type { Welcome } from '../../src/model/frames.ts';
import { Random } from '../fuzz/random.ts';
import { type BrowserTab, FakeBrowser } from '../helpers/browser-tabs.ts';
import { until } from '../helpers/cluster.ts';
import { CuttableSockets, openSession, snapshotOf, stateOf } from '../helpers/session.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { done } from '../helpers/writer.ts';

// In a browser: test/browser/shared-socket.test.ts. The same operations again, or more:
// SHARED_OPERATIONS=20000 SHARED_SEED=7 npm test -- --timeout 86400 test/client/shared-socket.test.ts

const OPERATIONS = Number(process.env['SHARED_OPERATIONS'] ?? 1_000);
const SEED = Number(process.env['SHARED_SEED'] ?? Date.now() % 1_000_000);

const isLive = (session: CollabSession): Promise<unknown> => stateOf(session, ({ status }) => status === 'live');
const connectionOf = (session: CollabSession): string | null => session.getSnapshot().connectionId;
/** The ids and texts of a snapshot, or of an answer of REST. */
const textsOf = (
  threads: readonly {
    readonly id: string;
    readonly comments: readonly { readonly id: string; readonly body: string }[];
  }[],
): string =>
  JSON.stringify(threads.map(({ id, comments }) => [id, comments.map((comment) => [comment.id, comment.body])]));

async function stored(tenant: Tenant): Promise<string> {
  return textsOf(
    done(200, await tenant.request<Pick<RoomSnapshot, 'threads'>>('GET', '/rooms/page?include=comments')).threads,
  );
}

t.test(
  `tabs that share a socket equal REST after ${OPERATIONS} random operations, while they come, go and crash (seed ${SEED})`,
  async (t) => {
    const service = await startService(t, { flags: { 'ws.messagesPerSecond': '1000', 'ws.messageBurst': '10000' } });
    const tenant = await service.tenant('shared', { quotas: { userWritesPerMinute: null } });
    await tenant.request('PUT', '/users/bot', { body: { kind: 'bot' } });
    const random = new Random(SEED);
    const browser = new FakeBrowser(random);
    const open = (): { tab: BrowserTab; session: CollabSession; seqs: number[] } => {
      const tab = browser.open(t);
      const session = openSession(t, tenant, 'ann', { WebSocket: tab.WebSocket });
      const seqs: number[] = [];
      session.on('event', ({ seq }) => seqs.push(seq));
      t.teardown(session.room('page').subscribe(() => {}));
      return { tab, session, seqs };
    };
    const tabs = [open(), open(), open()];
    const waiting = new Set<Promise<unknown>>();
    const refused: string[] = [];
    const run = (work: Promise<unknown>): void => {
      const settled = work
        .catch((error: unknown) => {
          const code = error instanceof CollabError ? error.code : String(error);
          // Another writer was faster, or the tab was closed.
          if (!/_not_found$|^forbidden$|^invalid_request$|^closed$/.test(code)) refused.push(code);
        })
        .finally(() => waiting.delete(settled));
      waiting.add(settled);
    };
    const written: string[] = [];
    for (let n = 0; n < OPERATIONS; n++) {
      const index = random.below(tabs.length);
      const { session, tab, seqs } = tabs[index] ?? open();
      const room = session.room('page');
      const { threads } = room.getSnapshot();
      const thread = threads[random.below(threads.length)];
      const comment = thread?.comments[random.below(thread.comments.length)];
      const kind = random.below(1_000);
      if (kind < 100 || thread === undefined || comment === undefined) run(room.createThread({ body: `thread ${n}` }));
      else if (kind < 500)
        run(room.createComment(thread.id, { body: `comment ${n}` }).then(({ id }) => written.push(id)));
      else if (kind < 600) run(room.updateComment(comment.id, { body: `edited ${n}` }));
      else if (kind < 650) run(room.deleteComment(comment.id));
      else if (kind < 900)
        run(
          tenant.request('POST', `/threads/${thread.id}/comments`, { body: { userId: 'bot', body: `by rest ${n}` } }),
        );
      else if (kind < 930) run(tenant.request('DELETE', `/threads/${thread.id}`));
      else if (kind < 945) tab.sockets.cut();
      else if (kind < 960 && tabs.length < 5) tabs.push(open());
      else if (kind < 975 && tabs.length > 2) {
        tabs.splice(index, 1);
        t.strictSame(
          seqs,
          [...new Set(seqs)].toSorted((a, b) => a - b),
          'every event once and in order',
        );
        if (random.chance(0.5)) tab.leave();
        else tab.crash();
        session.close();
      } else await Promise.race([...waiting, new Promise((resolve) => setImmediate(resolve))]);
      if (waiting.size > 40) await Promise.race(waiting);
    }
    await Promise.all(waiting);
    t.strictSame(refused, [], 'nothing was refused but for what another writer had removed');
    const expected = await stored(tenant);
    for (const { session, seqs } of tabs) {
      await isLive(session);
      await snapshotOf(session.room('page'), ({ threads }) => textsOf(threads) === expected).catch(() =>
        t.equal(textsOf(session.room('page').getSnapshot().threads), expected),
      );
      t.strictSame(
        seqs,
        [...new Set(seqs)].toSorted((a, b) => a - b),
        'every event once and in order',
      );
    }
    t.equal(
      new Set(tabs.map(({ session }) => connectionOf(session))).size,
      1,
      `one connection, ${tabs.length} tabs, ${written.length} comments`,
    );
  },
);

t.test('each tab gets every event, and one that comes back within the kept events loads nothing again', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  await tenant.request('PUT', '/users/bot', { body: {} });
  const browser = new FakeBrowser(new Random(1));
  const [first, second] = [browser.open(t), browser.open(t)];
  const ann = openSession(t, tenant, 'ann', { WebSocket: first.WebSocket });
  await isLive(ann);
  const other = openSession(t, tenant, 'ann', { WebSocket: second.WebSocket });
  await isLive(other);
  t.equal(connectionOf(other), connectionOf(ann));
  t.equal(first.sockets.opened + second.sockets.opened, 1);

  const seqs: number[] = [];
  other.on('event', ({ seq }) => seqs.push(seq));
  const write = async (body: string): Promise<void> =>
    void (await tenant.request('POST', '/rooms/page/threads', { body: { userId: 'bot', body } }));
  await write('1');
  await until(() => seqs.length > 0);
  for (const address of ['', 'x'] as const) {
    // A new address of the page's own socket shows what the leader answers to a position.
    const received: { type: string; seq?: number; data?: Partial<Welcome> }[] = [];
    const token = await tenant.token({ userId: 'ann' });
    const socket = new second.WebSocket(
      `${tenant.service.urls[0]?.replace('http', 'ws')}/api/v1/ws?epoch=${await epochOf(tenant)}${address}&since=${(seqs[0] ?? 0) - 1}`,
      ['collab.v1', `collab.key.${tenant.publishableKey}`, `collab.token.${token}`],
    );
    socket.onmessage = ({ data }: { readonly data: string }) => received.push(JSON.parse(data));
    await until(() => received.length > 0);
    await write('2');
    await until(() => received.some(({ seq }) => seq === (seqs.at(-1) ?? 0)));
    if (address === '') t.match(received, [{ type: 'welcome', data: { recovered: true } }, { seq: seqs[0] }]);
    else t.match(received, [{ type: 'welcome', data: { recovered: false } }]);
    const positions = received.flatMap(({ seq }) => seq ?? []);
    t.strictSame(
      positions,
      [...new Set(positions)].toSorted((a, b) => a - b),
    );
    socket.close();
  }
});

async function epochOf(tenant: Tenant): Promise<string> {
  const socket = await tenant.join({ userId: 'bob' });
  const { data } = (await socket.frame('welcome')) as unknown as { data: Welcome };
  return data.epoch;
}

t.test('a token that is refused does not disturb the other tabs', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  const expired = await tenant.token({ userId: 'ann', ttlSeconds: 60 });
  service.clock.advance(120_000);
  const browser = new FakeBrowser(new Random(1));
  const reasons: Record<string, string[]> = { expired: [], good: [] };
  const open = (name: string, token: () => string | Promise<string>): CollabSession =>
    openSession(t, tenant, 'ann', {
      WebSocket: browser.open(t).WebSocket,
      token: ({ reason }) => {
        reasons[name]?.push(reason);
        return token();
      },
    });
  const first = open('expired', () => expired);
  const second = open('good', () => tenant.token({ userId: 'ann' }));
  await Promise.all([isLive(first), isLive(second)]);
  t.strictSame(reasons, { expired: ['connect', 'refused'], good: ['connect'] });
  t.equal(connectionOf(first), connectionOf(second), 'the first one has joined the connection of the second one');
});

t.test('a tab whose leader does not answer opens a connection of its own', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const browser = new FakeBrowser(new Random(1));
  const [first, second] = [browser.open(t), browser.open(t)];
  const ann = openSession(t, tenant, 'ann', { WebSocket: first.WebSocket });
  await isLive(ann);
  const other = openSession(t, tenant, 'ann', { WebSocket: second.WebSocket });
  await isLive(other);
  first.isStopped = true;
  await t.resolves(other.room('page').createThread({ body: 'is anybody there?' }), 'a write notices it');
  t.equal(second.sockets.opened, 1);
  t.not(connectionOf(other), connectionOf(ann));
});

t.test('the next leader is heard, although the clock was set back since the election of the last one', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const browser = new FakeBrowser(new Random(1));
  const now = Date.now;
  t.teardown(() => (Date.now = now));
  const tabs = Array.from({ length: 4 }, () => {
    const tab = browser.open(t);
    return { tab, session: openSession(t, tenant, 'ann', { WebSocket: tab.WebSocket }) };
  });
  for (const { session } of tabs) await isLive(session);
  for (const back of [1_000, 2_000, 3_000]) {
    Date.now = () => now() - back;
    const index = tabs.findIndex(({ tab }) => tab === browser.leader());
    const [last] = tabs.splice(index, 1);
    const lost = tabs.map(({ session }) => stateOf(session, ({ status }) => status !== 'live'));
    last?.session.close();
    last?.tab.crash();
    await Promise.all(lost);
    for (const { session } of tabs) await isLive(session);
    t.equal(
      new Set(tabs.map(({ session }) => connectionOf(session))).size,
      1,
      `${tabs.length} tabs have one connection`,
    );
  }
});

t.test('a user stays in a room until the last tab has left it', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const browser = new FakeBrowser(new Random(1));
  const rooms = [browser.open(t), browser.open(t)].map((tab) =>
    openSession(t, tenant, 'ann', { WebSocket: tab.WebSocket }).room('page'),
  );
  const bob = openSession(t, tenant, 'bob').room('page');
  t.teardown(bob.subscribe(() => {}));
  const [leave, leaveLast] = rooms.map((room) => room.subscribe(() => {}));
  const annIs =
    (present: boolean) =>
    ({ presence }: RoomSnapshot): boolean =>
      presence.some(({ userId }) => userId === 'ann') === present;
  for (const room of [...rooms, bob]) await snapshotOf(room, annIs(true));

  const heard: unknown[] = [];
  rooms[1]?.on('broadcast', ({ data }) => heard.push(data));
  rooms[0]?.on('broadcast', ({ data }) => t.fail(`the sender got ${JSON.stringify(data)}`));
  const broadcast = new Promise((resolve) => bob.on('broadcast', ({ data }) => resolve(data)));
  rooms[0]?.broadcast({ wave: 1 });
  t.strictSame(await broadcast, { wave: 1 });
  await until(() => heard.length > 0);
  t.strictSame(heard, [{ wave: 1 }], 'a broadcast reaches the other tab');

  leave?.();
  await until(() => rooms[0]?.getSnapshot().status === 'loading');
  await rooms[1]?.createThread({ body: 'still here' });
  t.ok(annIs(true)(await snapshotOf(bob, ({ threads }) => threads.length === 1)));
  leaveLast?.();
  await snapshotOf(bob, annIs(false));
});

t.test('where locks or channels are missing, and for a token that cannot be read, it is a plain socket', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  for (const missing of ['navigator', 'BroadcastChannel']) {
    const { WebSocket } = new CuttableSockets();
    const page = {
      WebSocket,
      navigator: { locks: new FakeBrowser(new Random(1)).open(t) as never },
      BroadcastChannel: class {} as never,
      [missing]: undefined,
    };
    await isLive(openSession(t, tenant, 'ann', { WebSocket: sharedSocketsOf(page) }));
  }
  const refused = openSession(t, tenant, 'ann', {
    WebSocket: new FakeBrowser(new Random(1)).open(t).WebSocket,
    token: () => 'no.good.token',
  });
  t.match(await stateOf(refused, ({ status }) => status === 'closed'), { error: { code: 'invalid_token' } });
});

t.test(
  'tokens that differ in their times and ids share a connection; those of other rights, users, keys and servers do not',
  (t) => {
    const name = (claims: object, url = 'wss://a.example/api/v1/ws', key = 'pk_a'): string | null =>
      nameOf(url, [
        'collab.v1',
        `collab.key.${key}`,
        `collab.token.e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`,
      ]);
    const ann = name({ sub: 'ann', name: 'Änn', exp: 1, iat: 1, jti: 'a' });
    t.type(ann, 'string');
    t.equal(
      name({ jti: 'b', name: 'Änn', nbf: 1, sub: 'ann', exp: 2 }, 'wss://a.example/api/v1/ws?epoch=e&since=1'),
      ann,
    );
    const others = [
      name({ sub: 'bob', name: 'Änn' }),
      name({ sub: 'ann', name: 'Änn', rooms: ['a'] }),
      name({ sub: 'ann', name: 'Änn' }, 'wss://b.example/api/v1/ws'),
      name({ sub: 'ann', name: 'Änn' }, undefined, 'pk_b'),
    ];
    t.equal(new Set([ann, ...others]).size, 5);
    t.equal(nameOf('wss://a.example', ['collab.v1']), null);
    t.end();
  },
);

t.test('a position is resumed only while every frame after it is kept', (t) => {
  const welcome: Welcome = {
    connectionId: 'cn_1',
    userId: 'ann',
    environmentId: 'env_1',
    epoch: 'e',
    seq: 10,
    recovered: true,
    heartbeatMs: 1,
    maxMessageBytes: 65_536,
    tokenExpiresAt: '',
    role: 'member',
    serverTime: '',
  };
  const begin = (stream: ReplayBuffer, query: string): [boolean, number, string[]] => {
    const {
      seq,
      texts: [first = '', ...rest],
    } = stream.startAt(`wss://a.example${query}`);
    const { data } = JSON.parse(first) as { data: Welcome };
    return [data.recovered, seq, rest];
  };
  const stream = new ReplayBuffer(welcome, 7);
  stream.add(8, '8');
  t.strictSame(begin(stream, '?epoch=e&since=7'), [true, 7, ['8']]);
  t.strictSame(begin(stream, '?epoch=e&since=9'), [true, 9, []], 'what is still to come follows');
  t.strictSame(begin(stream, '?epoch=e&since=6'), [false, 10, []]);
  t.strictSame(begin(stream, '?epoch=e&since=11'), [false, 10, []]);
  t.strictSame(begin(stream, '?epoch=f&since=8'), [false, 10, []]);
  t.strictSame(begin(stream, ''), [false, 10, []], 'a tab that loads after the welcome needs nothing before it');
  for (let seq = 9; seq <= 600; seq++) stream.add(seq, String(seq));
  t.strictSame(begin(stream, '?epoch=e&since=100').slice(0, 2), [true, 100]);
  t.strictSame(begin(stream, '?epoch=e&since=99').slice(0, 2), [false, 600]);
  t.end();
});
