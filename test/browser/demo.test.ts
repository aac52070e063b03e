import { rmSync } from 'node:fs';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import t from 'tap';
import type { Test } from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, type Folder, initFolder, startCluster } from '../helpers/cluster.ts';

const config = { demo: true, shutdown: { closeSpreadSeconds: 0 } };

async function startDemo(t: Test, folder: Folder, port = 0): Promise<Cluster> {
  const cluster = await startCluster({ workers: 2, folder, port });
  t.teardown(() => cluster.stop());
  return cluster;
}

async function api(cluster: Cluster, method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { Authorization: `Bearer ${cluster.keys.secretKey}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${cluster.url}/api/v1${path}`, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  return answer;
}

/** Whether a test has killed the cluster: then the browser may find its connections reset. */
let killed = false;

/** Opens the demo as a user and waits until it is live. Whatever the page complains of fails the test. */
async function openPage(t: Test, context: BrowserContext, cluster: Cluster, user: string): Promise<Page> {
  const page = await context.newPage();
  page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
  page.on('console', (message) => {
    const expected = killed ? /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|WebSocket connection/ : /ERR_CONNECTION_REFUSED|WebSocket connection/;
    if (message.type() === 'error' && !expected.test(message.text())) t.fail(`the page logged: ${message.text()}`);
  });
  await page.goto(cluster.url);
  await page.getByLabel(user, { exact: true }).check();
  await live(page);
  return page;
}

async function live(page: Page): Promise<void> {
  await page.locator('#status[data-state=live]').waitFor();
}

function threadWith(page: Page, text: string): Locator {
  return page.locator('.thread', { hasText: text });
}

t.test('the demo page shows what happens, on every worker, and keeps it', { skip: skipReason, timeout: 90_000 }, async (t) => {
  const folder = await initFolder(config);
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startDemo(t, folder);
  const browser = await openBrowser(t);
  const context = await browser.newContext();
  const ann = await openPage(t, context, cluster, 'Ann');
  const bob = await openPage(t, await browser.newContext(), cluster, 'Bob');
  const loads = { count: 0 };
  for (const page of [ann, bob]) page.on('load', () => (loads.count += 1));

  await t.test('a thread that a backend posts appears at once, with its markup as text', async (t) => {
    await api(cluster, 'PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' });
    await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body: 'Deployment <b>failed</b>', position: { x: 0.5, y: 0.5 } });
    for (const page of [ann, bob]) {
      const thread = threadWith(page, 'Deployment <b>failed</b>');
      await thread.waitFor();
      t.equal(await thread.locator('b').count(), 0);
      await page.getByRole('button', { name: /^Pin 1: / }).waitFor();
    }
    await api(cluster, 'POST', '/rooms/elsewhere/threads', { userId: 'ci-bot', body: 'Not in this room' });
  });

  await t.test('a reply, an edit, a resolve and a reopen reach the other page', async (t) => {
    await threadWith(ann, 'Deployment').getByPlaceholder('Reply…').fill('I look into it');
    await threadWith(ann, 'Deployment').getByRole('button', { name: 'Reply' }).click();
    await threadWith(bob, 'I look into it').waitFor();

    await threadWith(bob, 'Deployment').getByPlaceholder('Reply…').fill('half a sentence');
    await threadWith(ann, 'Deployment').getByRole('button', { name: 'Edit' }).click();
    await ann.getByLabel('Text of your comment').fill('I looked into it');
    await ann.keyboard.press('Control+Enter');
    await threadWith(bob, 'I looked into it').getByText('edited', { exact: true }).waitFor();
    t.equal(await threadWith(bob, 'Deployment').getByRole('button', { name: 'Edit' }).count(), 0, 'only the author may edit');

    await threadWith(ann, 'Deployment').getByRole('button', { name: 'Resolve' }).click();
    await threadWith(bob, 'Deployment').getByText('Resolved', { exact: true }).waitFor();
    await threadWith(bob, 'Deployment').getByRole('button', { name: 'Reopen' }).click();
    await threadWith(ann, 'Deployment').getByRole('button', { name: 'Resolve' }).waitFor();
    t.equal(await threadWith(bob, 'Deployment').getByPlaceholder('Reply…').inputValue(), 'half a sentence', 'what is being typed stays');
  });

  await t.test('deleting the only comment takes the thread from both pages', async () => {
    await bob.getByLabel('New thread').fill('Posted by mistake');
    await bob.keyboard.press('Control+Enter');
    await threadWith(ann, 'Posted by mistake').waitFor();
    await threadWith(bob, 'Posted by mistake').getByRole('button', { name: 'Delete this thread' }).click();
    for (const page of [ann, bob]) await threadWith(page, 'Posted by mistake').waitFor({ state: 'detached' });
  });

  await t.test('a refusal is said in words', async (t) => {
    await ann.getByLabel('New thread').fill('   ');
    await ann.getByRole('button', { name: 'Post' }).click();
    await ann.getByRole('alert').waitFor();
    t.match(await ann.getByRole('alert').textContent(), /body must/);
    await ann.getByLabel('New thread').fill('');
  });

  await t.test('after kill -9 of the whole cluster the pages come back by themselves, with everything', async (t) => {
    killed = true;
    for (const pid of [...cluster.pids('web'), ...cluster.pids('background')]) process.kill(pid, 'SIGKILL');
    cluster.signal('SIGKILL');
    await cluster.ended;
    await bob.locator('#status:not([data-state=live])').waitFor();

    const again = await startDemo(t, folder, cluster.port);
    await Promise.all([live(ann), live(bob)]);
    await api(again, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body: 'Back again' });
    for (const page of [ann, bob]) {
      await threadWith(page, 'Back again').waitFor();
      t.equal(await page.locator('.thread').count(), 2);
      t.equal(await threadWith(page, 'Deployment').locator('.comment').count(), 2);
    }
    const late = await openPage(t, context, again, 'Ann');
    await threadWith(late, 'I looked into it').waitFor();
    t.equal(await late.locator('.thread').count(), 2, 'a new page shows the same');
  });
  t.equal(loads.count, 0, 'no page was reloaded');
});
