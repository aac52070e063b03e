import { rmSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, initFolder, stablePort, startCluster, until } from '../helpers/cluster.ts';
import { api, field, openDemo, pin, popover, reconnected } from '../helpers/widget-page.ts';

const viewport = { width: 1200, height: 900 };

/** The bodies of all comments of the room, sorted. */
async function bodies(cluster: Cluster): Promise<string[]> {
  const { threads } = (await (await api(cluster, 'GET', '/rooms/demo?include=comments')).json()) as {
    threads: { comments: { body: string }[] }[];
  };
  return threads.flatMap(({ comments }) => comments.map(({ body }) => body)).toSorted();
}

/** Waits until both pages show the same comments in the open thread. */
async function bothShow(pages: readonly Page[], texts: readonly string[]): Promise<void> {
  for (const page of pages) {
    for (const text of texts) await popover(page).locator('.comment:not(.pending) .body', { hasText: text }).waitFor();
  }
}

t.test('two pages while the server fails', { skip: skipReason }, async (t) => {
  const folder = await initFolder({
    rateLimit: { perMinute: 1_000_000 },
    demo: true,
    shutdown: { closeSpreadSeconds: 0 },
  });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const port = await stablePort();
  let cluster = await startCluster({ workers: 2, folder, port });
  t.teardown(() => cluster.kill());
  const browser = await openBrowser(t);
  const ann = await openDemo(t, await browser.newContext({ viewport }), cluster, 'ann');
  const bob = await openDemo(t, await browser.newContext({ viewport }), cluster, 'bob');
  const pages = [ann, bob];
  await api(cluster, 'PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' });
  await api(cluster, 'POST', '/rooms/demo/threads', {
    userId: 'ci-bot',
    body: 'Both type',
    position: { x: 0.3, y: 0.3 },
  });
  for (const page of pages) await pin(page, 'Both type').click();

  await t.test('kill -9 of each web worker while both type', async (t) => {
    for (const [round, pid] of cluster.pids('web').entries()) {
      await field(ann).fill(`Ann ${round}, half`);
      await field(bob).fill(`Bob ${round}, half`);
      process.kill(pid, 'SIGKILL');
      // Of one of the two, perhaps both, the connection is lost just now.
      await field(ann).press('Enter');
      await field(bob).press('End');
      await field(bob).pressSequentially(' and more');
      await until(() => cluster.pids('web').length === 2 && !cluster.pids('web').includes(pid));
      await Promise.all(pages.map(reconnected));
      t.equal(await field(bob).inputValue(), `Bob ${round}, half and more`);
      await field(bob).press('Enter');
      await bothShow(pages, [`Ann ${round}, half`, `Bob ${round}, half and more`]);
    }
    t.strictSame(
      await bodies(cluster),
      ['Ann 0, half', 'Ann 1, half', 'Bob 0, half and more', 'Bob 1, half and more', 'Both type'],
      'each comment exists once',
    );
  });

  await t.test('a restart of the server while both type', async (t) => {
    await field(ann).fill('Ann before');
    await field(bob).fill('Bob before');
    await cluster.stop();
    await ann.getByText(/The connection was lost\. Reconnecting|could not sign you in to the comments/).waitFor();
    await field(ann).press('Enter');
    await popover(ann).locator('.comment.pending', { hasText: 'Ann before' }).waitFor();
    await field(bob).press('End');
    await field(bob).pressSequentially(' and meanwhile');
    cluster = await startCluster({ workers: 2, folder, port });
    await Promise.all(pages.map(reconnected));
    t.equal(await field(bob).inputValue(), 'Bob before and meanwhile');
    await field(bob).press('Enter');
    await bothShow(pages, ['Ann before', 'Bob before and meanwhile']);
    t.equal((await bodies(cluster)).filter((body) => body.startsWith('Ann before')).length, 1);
  });
});
