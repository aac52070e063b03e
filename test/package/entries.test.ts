import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import WebSocket from 'ws';
import * as Y from 'yjs';
import type * as Client from '../../src/client/main.ts';
import type { SocketConstructor } from '../../src/client/platform.ts';
import type * as YjsEntry from '../../src/client/yjs.ts';
import { until } from '../helpers/cluster.ts';
import { startService, type Tenant } from '../helpers/service.ts';

// Uses the built entries, each of which has its own copy of what they have in common.

type Served = Pick<typeof Client, 'CollabError' | 'CollabSession'>;

const load = async (path: string): Promise<unknown> => import(new URL(`../../dist/${path}`, import.meta.url).href);
const main = (await load('client/main.js')) as typeof Client;
const served = (await load('sdk/collab.js')) as Served;
const { YjsProvider } = (await load('client/yjs.js')) as typeof YjsEntry;

/** A passing failure would be repeated by then. */
const REPEATED_MS = 11_000;

/** Lets a viewer, with a session of `entry`, change a document that the provider of `collab/yjs` saves. */
async function changeAsViewer(t: Test, tenant: Tenant, { CollabSession }: Served): Promise<void> {
  let puts = 0;
  const session = new CollabSession({
    serverUrl: tenant.service.urls[0] ?? '',
    publishableKey: tenant.publishableKey,
    token: () => tenant.token({ userId: 'eve', role: 'viewer' }),
    WebSocket: WebSocket as unknown as SocketConstructor,
    fetch: (url, init) => {
      if (init?.method === 'PUT') puts++;
      return fetch(url, init);
    },
  });
  t.teardown(() => session.close());
  const doc = new Y.Doc();
  const provider = new YjsProvider({ Y, doc, session, roomId: 'board' });
  t.teardown(() => provider.destroy());
  await until(() => provider.getSnapshot().synced, 60_000);
  doc.getText().insert(0, 'Not mine to write');
  await until(() => provider.getSnapshot().error !== null, 60_000);
  t.match(provider.getSnapshot(), { saved: false, error: { code: 'forbidden', status: 403 } });
  await pause(REPEATED_MS);
  t.equal(puts, 1, 'the write is not repeated');
  await t.rejects(provider.save(), { code: 'forbidden', status: 403 });
}

t.test(
  'the Yjs provider tells a refusal that the session of another entry got, and does not repeat the write',
  async (t) => {
    const tenant = await (await startService(t)).tenant('acme');
    await Promise.all([main, served].map((entry) => changeAsViewer(t, tenant, entry)));
  },
);

t.test('an error of one entry is a CollabError for every other one, and nothing else is', (t) => {
  for (const { CollabError } of [main, served]) {
    for (const made of [new main.CollabError('forbidden', 'No'), new served.CollabError('forbidden', 'No')])
      t.ok(made instanceof CollabError);
    for (const other of [new Error('No'), { name: 'CollabError' }, 'CollabError', null, undefined])
      t.notOk(other instanceof CollabError);
    class Special extends CollabError {}
    t.ok(new Special('forbidden', 'No') instanceof CollabError);
    t.ok(new Special('forbidden', 'No') instanceof Special);
    t.notOk(new CollabError('forbidden', 'No') instanceof Special);
  }
  t.end();
});
