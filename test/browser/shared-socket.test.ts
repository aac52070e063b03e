import { rmSync } from 'node:fs';
import type { BrowserContext, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, initFolder, stablePort, startCluster, until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { parsePrometheus } from '../helpers/prometheus.ts';
import { api, openDemo } from '../helpers/widget-page.ts';

// What runs in the page is text: it imports what the server hands out, and needs the types of browsers.

/** A server with a port that it keeps when it is started again, and with metrics. */
async function start(
  t: Test,
): Promise<{ cluster: () => Cluster; restart: () => Promise<void>; serverConnections: () => Promise<number> }> {
  const metricsPort = await stablePort();
  const port = await stablePort();
  const folder = await initFolder({
    metrics: { port: metricsPort },
    shutdown: { closeSpreadSeconds: 0 },
    rateLimit: { perMinute: 1_000_000 },
  });
  let cluster = await startCluster({ workers: 1, folder, port });
  t.teardown(async () => {
    await cluster.kill();
    rmSync(folder.dir, { recursive: true, force: true });
  });
  const serverConnections = async (): Promise<number> => {
    const samples =
      parsePrometheus(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()).get(
        'collab_ws_connections',
      )?.samples ?? [];
    return samples.reduce((sum, { value }) => sum + value, 0);
  };
  const restart = async (): Promise<void> => {
    await cluster.stop();
    cluster = await startCluster({ workers: 1, folder, port });
  };
  await api(cluster, 'PUT', '/users/bot', {});
  return { cluster: () => cluster, restart, serverConnections };
}

async function tokenOf(cluster: Cluster, userId: string): Promise<string> {
  return (
    (await (await api(cluster, 'POST', `/users/${userId}/tokens`, { ttlSeconds: 3600 })).json()) as { token: string }
  ).token;
}

/** Opens a tab whose session shares its socket, in the room `page`, and counts the sockets that it opens itself. */
async function openTab(t: Test, context: BrowserContext, cluster: Cluster, userId = 'ann'): Promise<Page> {
  const page = await context.newPage();
  page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
  await page.goto(`${cluster.url}/sdk/manifest.json`);
  const token = await tokenOf(cluster, userId);
  await page.evaluate(`(async () => {
    globalThis.own = 0;
    globalThis.WebSocket = class extends WebSocket {
      constructor(...args) {
        super(...args);
        own++;
        this.addEventListener('close', () => own--);
      }
    };
    const [{ CollabSession }, { SharedSocket }] = await Promise.all([import('/sdk/collab.js'), import('/sdk/shared-socket.js')]);
    globalThis.session = new CollabSession({ publishableKey: ${JSON.stringify(cluster.keys.publishableKey)}, token: () => ${JSON.stringify(token)}, WebSocket: SharedSocket });
    globalThis.seqs = [];
    session.on('event', ({ seq }) => seqs.push(seq));
    globalThis.room = session.room('page');
    globalThis.leave = room.subscribe(() => {});
    globalThis.texts = () => room.getSnapshot().threads.map(({ comments }) => comments[0].body).sort();
    await room.ready();
  })()`);
  await page.waitForFunction(`session.getSnapshot().status === 'live'`);
  return page;
}

/** How many sockets each tab has opened and not closed. */
const ownSockets = (tabs: readonly Page[]): Promise<number[]> =>
  Promise.all(tabs.map((tab) => tab.evaluate<number>('own')));
const connections = async (tabs: readonly Page[]): Promise<number> =>
  new Set(await Promise.all(tabs.map((tab) => tab.evaluate('session.getSnapshot().connectionId')))).size;
const isShared = async (tabs: readonly Page[]): Promise<boolean> =>
  (await connections(tabs)) === 1 &&
  (await ownSockets(tabs)).reduce((sum, each) => sum + each, 0) === 1 &&
  (await Promise.all(tabs.map((tab) => tab.evaluate(`session.getSnapshot().status === 'live'`)))).every(Boolean);
const write = (tab: Page, body: string): Promise<unknown> =>
  tab.evaluate(`room.createThread({ body: ${JSON.stringify(body)} }).then(({ comments }) => comments?.[0]?.body)`);

/** Waits until all tabs show exactly what REST returns, after events each once and in order. */
async function allEqual(t: Test, cluster: Cluster, tabs: readonly Page[]): Promise<void> {
  const { threads } = (await (await api(cluster, 'GET', '/rooms/page?include=comments')).json()) as {
    threads: { comments: { body: string }[] }[];
  };
  const texts = threads.map(({ comments }) => comments[0]?.body ?? '').toSorted();
  for (const tab of tabs) {
    await tab.waitForFunction(`JSON.stringify(texts()) === ${JSON.stringify(JSON.stringify(texts))}`);
    const seqs = await tab.evaluate<number[]>('seqs');
    t.strictSame(
      seqs,
      [...new Set(seqs)].toSorted((a, b) => a - b),
      'every event once and in order',
    );
  }
}

t.test('the tabs of a browser share a connection', { skip: skipReason }, async (t) => {
  const { cluster, restart, serverConnections } = await start(t);
  const browser = await openBrowser(t, { ownProcesses: true });
  const context = await browser.newContext();
  let tabs = [
    await openTab(t, context, cluster()),
    await openTab(t, context, cluster()),
    await openTab(t, context, cluster()),
  ];
  const leader = async (): Promise<Page> => {
    const own = await ownSockets(tabs);
    const tab = tabs[own.indexOf(1)];
    if (tab === undefined) throw new Error(`no tab has a socket: ${own.join(' ')}`);
    return tab;
  };
  const rowsOf = async (userId: string): Promise<{ connections: number }[]> => {
    const { items } = (await (await api(cluster(), 'GET', '/rooms/page/presence')).json()) as {
      items: { userId: string; connections: number }[];
    };
    return items.filter((row) => row.userId === userId);
  };

  await t.test('three tabs have one, and each gets its own answers and every event', async (t) => {
    t.ok(await isShared(tabs));
    t.match(await rowsOf('ann'), [{ connections: 1 }]);
    await until(async () => (await serverConnections()) === 1, 20_000);
    await Promise.all(
      tabs.flatMap((tab, n) => Array.from({ length: 10 }, (_, each) => write(tab, `tab ${n} writes ${each}`))),
    );
    await api(cluster(), 'POST', '/rooms/page/threads', { body: 'by REST', userId: 'bot' });
    await allEqual(t, cluster(), tabs);
    const [first, ...others] = await Promise.all(tabs.map((tab) => tab.evaluate<number[]>('seqs.slice(-25)')));
    for (const other of others) t.strictSame(other, first);
  });

  await t.test('a tab that opens later shows the same', async (t) => {
    tabs.push(await openTab(t, context, cluster()));
    await allEqual(t, cluster(), tabs);
    t.ok(await isShared(tabs));
  });

  await t.test('a tab of another user has its own', async (t) => {
    const bob = await openTab(t, context, cluster(), 'bob');
    t.strictSame(await ownSockets([bob]), [1]);
    t.equal(await connections([...tabs, bob]), 2);
    await bob.close();
  });

  for (const [how, stays, end] of [
    ['is closed', false, (tab: Page) => tab.close()],
    [
      'crashes',
      false,
      async (tab: Page) => void (await (await context.newCDPSession(tab)).send('Page.crash').catch(() => undefined)),
    ],
    [
      'is told that it will be frozen',
      true,
      (tab: Page) => tab.evaluate(`void document.dispatchEvent(new Event('freeze'))`),
    ],
  ] as const) {
    await t.test(`when the tab with the connection ${how}, the others go on and nothing is lost`, async (t) => {
      while (tabs.length < 3) tabs.push(await openTab(t, context, cluster()));
      const ended = await leader();
      tabs = tabs.filter((tab) => tab !== ended);
      const writing = tabs.flatMap((tab, n) =>
        Array.from({ length: 5 }, (_, each) => write(tab, `${how}: ${n} ${each}`)),
      );
      const ending = end(ended);
      await api(cluster(), 'POST', '/rooms/page/threads', { body: `${how}: by REST`, userId: 'bot' });
      await Promise.all([...writing, Promise.race([ending, Promise.all(writing)])]);
      // A tab that stays connects again too, and may be the next one with the connection.
      await until(() => isShared(stays ? [...tabs, ended] : tabs));
      await allEqual(t, cluster(), tabs);
      await ended.close();
      await until(() => isShared(tabs));
    });
  }

  await t.test('all tabs come back after the server was started again', async (t) => {
    await restart();
    await Promise.all(tabs.map((tab) => write(tab, 'after the restart')));
    await until(() => isShared(tabs));
    await allEqual(t, cluster(), tabs);
  });

  await t.test('a user is present until the last tab has left the room', async (t) => {
    const [last, ...others] = tabs;
    for (const tab of others) await tab.evaluate('leave()');
    for (const tab of others) await tab.waitForFunction(`room.getSnapshot().status === 'loading'`);
    t.equal((await rowsOf('ann')).length, 1);
    await last?.evaluate('leave()');
    await until(async () => (await rowsOf('ann')).length === 0);
  });

  await t.test('a tab whose leader holds the lock and does not answer connects by itself', async (t) => {
    const other = await browser.newContext();
    const first = await openTab(t, other, cluster());
    const name = await first.evaluate<string>(
      `navigator.locks.query().then(({ held }) => held.find(({ name }) => name.endsWith(']')).name)`,
    );
    await first.evaluate('session.close()');
    await first.evaluate(
      `new Promise((resolve) => navigator.locks.request(${JSON.stringify(name)}, () => (resolve(), new Promise(() => {}))))`,
    );
    const second = await openTab(t, other, cluster());
    t.strictSame(await ownSockets([second]), [1]);
    await write(second, 'alone');
    await allEqual(t, cluster(), [second]);
  });
});

t.test('widgets with share-connection have one connection', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const context = await (await openBrowser(t)).ownContext();
  await context.addInitScript(`
    globalThis.own = 0;
    globalThis.WebSocket = class extends WebSocket { constructor(...args) { super(...args); own++; this.addEventListener('close', () => own--); } };`);
  const pages = [await openDemo(t, context, cluster, 'ann'), await openDemo(t, context, cluster, 'ann')];
  t.strictSame(await ownSockets(pages), [1, 1], 'not by default');
  for (const page of pages) await page.evaluate(`document.querySelector('collab-comments').shareConnection = true`);
  await until(async () => (await ownSockets(pages)).reduce((sum, each) => sum + each, 0) === 1);
  await api(cluster, 'PUT', '/users/bot', {});
  await api(cluster, 'POST', '/rooms/demo/threads', { body: 'for both', userId: 'bot', position: { x: 0.5, y: 0.5 } });
  for (const page of pages)
    await page
      .getByRole('button', { name: /for both/ })
      .first()
      .waitFor();
});
