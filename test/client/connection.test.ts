import type { AddressInfo } from 'node:net';
import t from 'tap';
import WebSocket, { WebSocketServer } from 'ws';
import { Emitter, Observable } from '../../src/client/emitter.ts';
import type { SocketConstructor } from '../../src/client/platform.ts';
import { Random } from '../fuzz/random.ts';
import { FakeBrowser } from '../helpers/browser-tabs.ts';
import { CuttableSockets, openSession, snapshotOf, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';

t.test('a listener that subscribes again while it is called is not called twice for the same event', async (t) => {
  const emitter = new Emitter<{ change: number }>();
  const observable = new Observable();
  const seen: (number | string)[] = [];
  let stop = emitter.on('change', listen);
  function listen(n: number): void {
    seen.push(n);
    if (seen.length > 100) throw new Error('endless');
    stop();
    stop = emitter.on('change', listen);
  }
  emitter.emit('change', 1);
  emitter.emit('change', 2);
  t.strictSame(seen, [1, 2]);

  let end = observable.subscribe(changed);
  function changed(): void {
    seen.push('changed');
    if (seen.length > 100) throw new Error('endless');
    end();
    end = observable.subscribe(changed);
  }
  const never = observable.subscribe(() => seen.push('removed'));
  const first = observable.subscribe(() => seen.push('last'));
  never();
  observable.changed();
  await Promise.resolve();
  t.strictSame(seen, [1, 2, 'changed', 'last']);
  first();
});

t.test('a refused message is not the reason of a later loss', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const sockets: WebSocket[] = [];
  const session = openSession(t, tenant, 'ann', {
    WebSocket: class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols);
        sockets.push(this);
      }
    } as unknown as SocketConstructor,
    backoff: { firstMs: 1e9, maxMs: 1e9 },
  });
  await stateOf(session, ({ status }) => status === 'live');
  const refused = new Promise((resolve) =>
    sockets[0]?.on('message', (data) => String(data).includes('not_in_room') && resolve(data)),
  );
  session.room('elsewhere').broadcast('hello');
  t.notMatch(JSON.parse(String(await refused)), { id: Number });
  sockets[0]?.terminate();
  t.match(await stateOf(session, ({ error }) => error !== null), {
    status: 'reconnecting',
    error: { code: 'network' },
  });
});

t.test('users are looked up once there is a connection', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  await tenant.request('PUT', '/users/bob', { body: { name: 'Bob' } });
  const session = openSession(t, tenant, 'ann', { lazy: true });
  const found = Promise.all([session.users(['bob']), session.searchUsers('bo')]);
  t.equal(session.getSnapshot().status, 'connecting');
  t.match(await found, [{ bob: { name: 'Bob' } }, [{ userId: 'bob' }]]);
  session.close();
  await t.rejects(session.users(['bob']), { code: 'closed' });
});

t.test('a server that does not speak JSON is named, and is tried again', async (t) => {
  const server = new WebSocketServer({ port: 0, handleProtocols: () => 'collab.v1' });
  t.teardown(() => server.close());
  let connections = 0;
  server.on('connection', (socket) => socket.send(connections++ % 2 === 0 ? '<html>' : 'null'));
  const tenant = await (await startService(t)).tenant('acme');
  const serverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const options of [{}, { WebSocket: new FakeBrowser(new Random(1)).open(t).WebSocket }]) {
    const before = connections;
    const session = openSession(t, tenant, 'ann', { serverUrl, ...options });
    t.match(await stateOf(session, ({ error }) => error !== null && connections > before + 2), {
      error: { code: 'protocol' },
      reason: /not a Collab server/,
    });
    session.close();
  }
});

t.test('an error of a listener of the page is not hidden', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const session = openSession(t, tenant, 'ann');
  await stateOf(session, ({ status }) => status === 'live');
  const thrown = new Promise((resolve) => process.once('uncaughtException', resolve));
  session.on('event', () => {
    throw new Error('of the page');
  });
  await tenant.request('PUT', '/users/bob', { body: { name: 'Bob' } });
  t.match(await thrown, { message: 'of the page' });
  t.equal(session.getSnapshot().status, 'live');
});

t.test('a closed session stays closed until reconnect(), and then goes on as before', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const sockets = new CuttableSockets();
  const session = openSession(t, tenant, 'ann', { WebSocket: sockets.WebSocket });
  const room = session.room('page');
  t.teardown(room.subscribe(() => {}));
  await room.ready();
  session.close();
  t.match(session.getSnapshot(), { status: 'closed', error: null });
  t.equal(sockets.opened, 1);
  session.reconnect();
  await stateOf(session, ({ status }) => status === 'live');
  t.equal(sockets.opened, 2);
  await room.createThread({ body: 'hello' });
  await snapshotOf(room, ({ threads }) => threads[0]?.pending === null);
});

t.test('a presence state that the server would refuse is refused at the call', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const ann = openSession(t, tenant, 'ann').room('page');
  const bob = openSession(t, tenant, 'bob').room('page');
  for (const room of [ann, bob]) t.teardown(room.subscribe(() => {}));
  await snapshotOf(ann, ({ presence }) => presence.length === 2);
  const frame = JSON.stringify({ text: '' }).length;
  t.throws(() => ann.setPresence({ text: `é${'x'.repeat(4_095 - frame)}` }), {
    code: 'invalid_request',
    message: /larger than 4096 bytes \(4 KiB\) of JSON/,
  });
  const text = `é${'x'.repeat(4_094 - frame)}`;
  ann.setPresence({ text });
  await snapshotOf(bob, ({ presence }) => presence.some(({ state }) => state['text'] === text));
});
