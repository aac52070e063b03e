import t from 'tap';
import type { Test } from 'tap';
import * as Y from 'yjs';
import { YjsProvider } from '../../src/client/yjs.ts';
import { Random } from '../fuzz/random.ts';
import { until } from '../helpers/cluster.ts';
import { CuttableSockets, openSession, stateOf } from '../helpers/session.ts';
import { startService, type Tenant } from '../helpers/service.ts';

/** A provider repeats what failed after 5 s, and after a `Retry-After` of up to a minute. */
const TIMEOUT_MS = 120_000;

interface Editor {
  readonly doc: Y.Doc;
  readonly text: Y.Text;
  readonly provider: YjsProvider<Y.Doc>;
  readonly sockets: CuttableSockets;
}

/** Opens the document of a room as a user, in a session of its own. Both end with the test. */
function openEditor(t: Test, tenant: Tenant, userId: string, before = ''): Editor {
  const sockets = new CuttableSockets();
  const session = openSession(t, tenant, userId, {
    WebSocket: sockets.WebSocket,
    backoff: { firstMs: 50, maxMs: 100 },
  });
  const doc = new Y.Doc();
  if (before !== '') doc.getText().insert(0, before);
  const provider = new YjsProvider({ Y, doc, session, roomId: 'board' });
  t.teardown(() => provider.destroy());
  return { doc, text: doc.getText(), provider, sockets };
}

/** The text of the state that the server has. */
async function storedText(tenant: Tenant): Promise<string> {
  const { json } = await tenant.request<{ state: string | null }>('GET', '/rooms/board/p2p/state');
  const doc = new Y.Doc();
  if (json.state !== null) Y.applyUpdate(doc, Buffer.from(json.state, 'base64'));
  return doc.getText().toString();
}

const synced = ({ provider }: Editor): Promise<void> => until(() => provider.getSnapshot().synced, TIMEOUT_MS);

t.test('two documents become equal, the server has them, and a third one gets them', async (t) => {
  const tenant = await (await startService(t, { workers: 2 })).tenant('acme');
  const ann = openEditor(t, tenant, 'ann', 'Typed before. ');
  const bob = openEditor(t, tenant, 'bob');
  await Promise.all([synced(ann), synced(bob)]);
  await until(() => bob.text.toString() === 'Typed before. ', TIMEOUT_MS);
  ann.text.insert(ann.text.length, 'By Ann. ');
  bob.text.insert(bob.text.length, 'By Bob. ');
  await until(() => ann.text.toString().length === 30 && ann.text.toString() === bob.text.toString(), TIMEOUT_MS);
  bob.text.delete(0, 'Typed before. '.length);
  await until(() => !ann.text.toString().includes('before'), TIMEOUT_MS);
  await Promise.all([ann.provider.save(), bob.provider.save()]);
  t.match(ann.provider.getSnapshot(), { synced: true, saved: true, error: null });
  t.equal(await storedText(tenant), ann.text.toString());
  const late = openEditor(t, tenant, 'eve');
  await synced(late);
  t.equal(late.text.toString(), ann.text.toString());
});

t.test('what is too large for a broadcast arrives by the server', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const ann = openEditor(t, tenant, 'ann');
  const bob = openEditor(t, tenant, 'bob');
  await Promise.all([synced(ann), synced(bob)]);
  ann.text.insert(0, 'x'.repeat(50_000));
  await until(() => bob.text.length === 50_000, TIMEOUT_MS);
});

t.test('a save that adds nothing to what another client saved at once does not hide that write', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  for (const users of [
    ['ann', 'bob'],
    ['eve', 'eve'],
  ]) {
    const [one, other] = users.map((userId) => openEditor(t, tenant, userId));
    if (one === undefined || other === undefined) throw new Error('two editors');
    await Promise.all([synced(one), synced(other)]);
    for (let round = 1; round <= 5; round++) {
      other.text.insert(0, 'Short. ');
      await until(() => one.text.length === other.text.length, TIMEOUT_MS);
      // Too large for a broadcast, so only the event of this write tells the other of it.
      one.text.insert(0, 'x'.repeat(10_000));
      await Promise.all([one.provider.save(), other.provider.save()]);
      // Sooner than a session without heartbeats connects again, which would load it, too.
      await until(() => other.text.toString() === one.text.toString(), 20_000);
    }
    await Promise.all([one.provider.destroy(), other.provider.destroy()]);
  }
});

t.test('documents with any changes at any time become equal, also in two tabs of a user', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const editors = ['ann', 'ann', 'bob'].map((userId) => openEditor(t, tenant, userId));
  await Promise.all(editors.map(synced));
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.comment(`SEED=${seed}`);
  const random = new Random(seed);
  for (let round = 0; round < 6; round++) {
    const saves: Promise<void>[] = [];
    for (let step = 0; step < 12; step++) {
      const { text, provider, sockets } = random.pick(editors);
      const at = random.below(text.length + 1);
      const action = random.below(8);
      if (action < 3) text.insert(at, `${round}.${step} `);
      else if (action === 3) text.insert(at, 'x'.repeat(7_000));
      else if (action === 4) text.delete(at, Math.min(random.below(30), text.length - at));
      else if (action === 5) saves.push(provider.save());
      else if (action === 6) sockets.cut();
      else await Promise.all(saves.splice(0));
    }
    await Promise.all(saves);
    await until(() => new Set(editors.map(({ text }) => text.toString())).size === 1, 20_000);
  }
  await Promise.all(editors.map(({ provider }) => provider.save()));
  t.equal(await storedText(tenant), editors[0]?.text.toString());
});

t.test('changes made without a connection reach both sides after it', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const ann = openEditor(t, tenant, 'ann');
  const bob = openEditor(t, tenant, 'bob');
  await Promise.all([synced(ann), synced(bob)]);
  for (let round = 0; round < 5; round++) {
    ann.sockets.cut();
    ann.text.insert(0, `Ann ${round}. `);
    bob.sockets.cut();
    bob.text.insert(bob.text.length, `Bob ${round}. `);
    await until(
      () => ann.text.toString() === bob.text.toString() && ann.text.toString().includes(`Bob ${round}`),
      TIMEOUT_MS,
    );
  }
  await Promise.all([ann.provider.save(), bob.provider.save()]);
  t.equal(await storedText(tenant), ann.text.toString());
  t.equal(ann.text.length, 5 * 2 * 'Ann 0. '.length);
});

t.test('destroy saves what was not saved yet, and ends the exchange', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const ann = openEditor(t, tenant, 'ann');
  const bob = openEditor(t, tenant, 'bob');
  await Promise.all([synced(ann), synced(bob)]);
  ann.text.insert(0, 'The last words');
  await ann.provider.destroy();
  t.equal(await storedText(tenant), 'The last words');
  ann.text.insert(0, 'Alone: ');
  await until(() => bob.text.toString() === 'The last words', TIMEOUT_MS);
  await bob.provider.save();
  t.equal(await storedText(tenant), 'The last words');
});

t.test('a refusal is told, and the document stays', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const session = openSession(t, tenant, 'eve', { token: () => tenant.token({ userId: 'eve', role: 'viewer' }) });
  const doc = new Y.Doc();
  const provider = new YjsProvider({ Y, doc, session, roomId: 'board' });
  t.teardown(() => provider.destroy());
  await stateOf(session, ({ status }) => status === 'live');
  doc.getText().insert(0, 'Not mine to write');
  await t.rejects(provider.save(), { code: 'forbidden' });
  t.match(provider.getSnapshot(), { saved: false, error: { code: 'forbidden' } });
  t.equal(doc.getText().toString(), 'Not mine to write');
});
