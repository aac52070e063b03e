import { rmSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import type { Test } from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, initFolder, startCluster, until } from '../helpers/cluster.ts';
import { collab } from '../helpers/command.ts';
import { serveHtml } from '../helpers/own-page.ts';
import { userToken } from '../helpers/user-token.ts';
import { api, field, live, openDemo, openPage, pin, popover, reconnected } from '../helpers/widget-page.ts';

const viewport = { width: 1200, height: 900 };
/** What a browser logs when the server answers with a refusal. */
const refusals = /status of 4\d\d/;

/** Waits until the open thread has a comment that the server has confirmed. */
async function shown(page: Page, text: string): Promise<void> {
  await popover(page).locator('.comment:not(.pending) .body', { hasText: text }).waitFor();
}

/** Waits until the toolbar says why there is no connection, and is not busy. */
async function notConnected(t: Test, page: Page, reason: string): Promise<void> {
  await page.locator('collab-comments .toolbar').getByTitle(reason).waitFor();
  t.equal(await page.locator('collab-comments .spinner').count(), 0);
}

/** A token of Ann that expires in so many seconds. */
function tokenOf({ keys }: Cluster, seconds: number): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return userToken(keys, 'ann', { name: 'Ann', iat: now - 3_600, exp: now + seconds });
}

/**
 * Serves a page of another origin whose token the test can replace (`give`); with `hold`, one that is given after a
 * refusal waits for `release`. `connection` is the last status. It ends with the test.
 */
async function pageWithTokens(t: Test, { url, keys }: Cluster, token: string): Promise<string> {
  const html = `<!doctype html><html lang="en"><title>Page</title><script type="module" src="${url}/widget.js"></script><h1 id="title">Page</h1><script>
    let current = '${token}';
    let held, release, connection;
    const give = (token, hold) => {
      current = token;
      held = hold ? new Promise((resolve) => { release = () => resolve(token); }) : undefined;
    };
    const tokenProvider = ({ reason }) => (reason === 'refused' && held) || current;
    const element = Object.assign(document.createElement('collab-comments'), { room: 'demo', publishableKey: '${keys.publishableKey}', tokenProvider });
    element.addEventListener('collab-status', ({ detail }) => { connection = detail.status; });
    document.body.append(element);
  </script></html>`;
  return serveHtml(t, html);
}

t.test('what fails is said in words, and nothing that was typed is lost', { skip: skipReason }, async (t) => {
  const folder = await initFolder({
    rateLimit: { perMinute: 1_000_000 },
    demo: true,
    shutdown: { closeSpreadSeconds: 0 },
  });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startCluster({ workers: 2, folder });
  t.teardown(() => cluster.kill());
  const browser = await openBrowser(t);
  const ann = await openDemo(t, await browser.newContext({ viewport }), cluster, 'ann', refusals);
  const bob = await openDemo(t, await browser.newContext({ viewport }), cluster, 'bob', refusals);
  const pages = [ann, bob];
  await api(cluster, 'PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' });
  await api(cluster, 'POST', '/rooms/demo/threads', {
    userId: 'ci-bot',
    body: 'Both type',
    position: { x: 0.3, y: 0.3 },
  });
  for (const page of pages) await pin(page, 'Both type').click();

  await t.test('a token that expires: what happened, what to do, and a way back without a reload', async (t) => {
    const page = await openPage(
      t,
      await browser.newContext({ viewport }),
      await pageWithTokens(t, cluster, await tokenOf(cluster, 300)),
      refusals,
    );
    await live(page);
    await pin(page, 'Both type').click();
    await field(page).fill('Typed before it expired');
    const expired = await tokenOf(cluster, -60);
    await page.evaluate(`give('${expired}', true)`);
    for (const pid of cluster.pids('web')) process.kill(pid, 'SIGKILL');
    await page.getByText('Your session has ended. Sign in again, or reload the page.').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    t.equal(await page.evaluate('connection'), 'reconnecting', 'the token is asked for once more');
    await page.evaluate('release()');
    await until(() => page.evaluate("connection === 'closed'"));
    t.strictSame(await page.getByRole('alert').allTextContents(), [], 'what was dismissed is not said again');
    await notConnected(t, page, 'Your session has ended. Sign in again, or reload the page.');
    await field(page).press('Enter');
    await page.getByText('Your session has ended.').waitFor();
    await popover(page).locator('.comment.pending').waitFor({ state: 'detached' });
    t.equal(await field(page).inputValue(), 'Typed before it expired');
    t.equal(await page.locator('collab-comments .toast').count(), 1, 'the cause, and not that there is no connection');
    await page.evaluate(`give('${await tokenOf(cluster, 300)}')`);
    await page.getByRole('button', { name: 'Try again' }).click();
    await reconnected(page);
    t.equal(await page.locator('collab-comments .toast').count(), 0);
    t.equal(await field(page).inputValue(), 'Typed before it expired');
    await field(page).press('Enter');
    await shown(page, 'Typed before it expired');
    await page.close();
    await Promise.all(pages.map(reconnected));
  });

  await t.test(
    'too many writes: the refused comment is in its field again, in front of what was typed since',
    async (t) => {
      const limit = (writes: string): Promise<unknown> =>
        collab(['env', 'update', 'default', '--quotas', `userWritesPerMinute=${writes}`, '--dir', folder.dir]);
      t.match(await limit('1'), { code: 0 });
      const workers = cluster.pids('web');
      const send = async (text: string): Promise<void> => {
        // The workers answer only when the next sentence has been begun.
        for (const pid of workers) process.kill(pid, 'SIGSTOP');
        try {
          await field(ann).fill(text);
          await field(ann).press('Enter');
          await popover(ann).locator('.comment.pending', { hasText: text }).waitFor();
          await field(ann).fill(`${text}, next`);
        } finally {
          for (const pid of workers) process.kill(pid, 'SIGCONT');
        }
        await popover(ann).locator('.comment.pending').waitFor({ state: 'detached' });
      };
      await send('Perhaps accepted');
      await send('Refused');
      await ann.getByText(/That was a lot at once\. Wait \d+ seconds, then try again\./).waitFor();
      t.equal(await field(ann).inputValue(), 'Refused\nRefused, next');
      t.match(await limit('600'), { code: 0 });
      await field(ann).fill('');
    },
  );

  await t.test('an origin that is not allowed', async (t) => {
    const url = await pageWithTokens(t, cluster, await tokenOf(cluster, 300));
    const origins = (list: string): Promise<unknown> =>
      collab(['env', 'update', 'default', '--allowed-origins', list, '--dir', folder.dir]);
    t.match(await origins('https://elsewhere.example'), { code: 0 });
    const page = await openPage(t, await browser.newContext({ viewport }), url, /./);
    const reason = `This site may not use the comments. Its owner has to add ${new URL(url).origin} to the allowed origins.`;
    await page.getByText(reason).waitFor();
    await notConnected(t, page, reason);
    await page.getByRole('button', { name: 'Show comments' }).click();
    const panel = page.getByRole('complementary');
    await panel.getByText(reason).waitFor();
    t.equal(await page.getByText(reason).count(), 1, 'once');
    t.equal(await page.getByText('No open comments').count(), 0);
    t.match(await origins(''), { code: 0 });
    await panel.getByRole('button', { name: 'Try again' }).click();
    await panel.getByText('Both type').waitFor();
    await panel.getByRole('button', { name: 'Close' }).click();
    await live(page);
    await pin(page, 'Both type').waitFor();
    await page.close();
  });

  await t.test('a key that is revoked while someone types', async (t) => {
    await field(bob).fill('Typed when the key went');
    const keys = (await collab(['key', 'list', '--env', 'default', '--dir', folder.dir, '--json'])).stdout;
    const { id } = (JSON.parse(keys) as { items: { id: string; kind: string }[] }).items.find(
      ({ kind }) => kind === 'publishable',
    ) ?? { id: '' };
    t.match(await collab(['key', 'revoke', id, '--yes', '--dir', folder.dir]), { code: 0 });
    const reason = 'This page’s key is not valid. Ask the owner of this page to check the publishable key.';
    await bob.getByText(reason).waitFor();
    t.equal(await field(bob).inputValue(), 'Typed when the key went');
    await notConnected(t, bob, reason);
  });

  await t.test('too many connections: when it is tried again, by itself', async (t) => {
    const page = await browser.newPage({ viewport });
    await page.routeWebSocket(/\/ws$/, (socket) => socket.close({ code: 4429, reason: 'rate_limited' }));
    await page.goto(await pageWithTokens(t, cluster, await tokenOf(cluster, 300)));
    await page.getByText(/That was a lot at once\. Retrying in [5-9] s\./).waitFor();
    t.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0);

    await page.unrouteAll();
    await page.routeWebSocket(/\/ws$/, (socket) => {
      socket.send(
        '{"type":"error","error":{"code":"rate_limited","message":"Rate limit exceeded. Try again in 42s","retryAfter":42}}',
      );
      void socket.close({ code: 4429, reason: 'rate_limited' });
    });
    await page.reload();
    // It counts down, and this page may be slow to be looked at; its own delays are below 10 s.
    await page.getByText(/That was a lot at once\. Retrying in (?:4[0-2]|[23]\d) s\./).waitFor();
    await page.close();
  });
});
