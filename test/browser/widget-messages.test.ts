import { rmSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import type { Test } from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, initFolder, startCluster, until } from '../helpers/cluster.ts';
import { serveHtml } from '../helpers/own-page.ts';
import {
  api,
  commentMenu,
  commentWith,
  field,
  live,
  openDemo,
  openPage,
  pin,
  popover,
} from '../helpers/widget-page.ts';

const viewport = { width: 1200, height: 900 };
let placed = 0;
const GONE = 'This was deleted meanwhile.';

/** Serves a page of another origin with the widget, until the test ends. */
async function serve(
  t: Test,
  { url }: Cluster,
  attributes: string,
  headers: Readonly<Record<string, string>> = {},
  lang = 'en',
): Promise<string> {
  const html = `<!doctype html><html lang="${lang}"><title>Page</title><script type="module" src="${url}/widget.js"></script><body><h1>Page</h1><collab-comments ${attributes}></collab-comments>`;
  return serveHtml(t, html, headers);
}

/** Posts a thread at a place of its own and returns its id. */
async function thread(cluster: Cluster, body: string): Promise<string> {
  placed += 1;
  const position = { x: 0.1 * placed, y: 0.3 };
  const answer = (await (
    await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body, position })
  ).json()) as { thread: { id: string } };
  return answer.thread.id;
}

/** Presses the button of the message that something is gone, and returns what is in the clipboard then. */
async function copied(page: Page): Promise<string> {
  await page.locator('.toast', { hasText: GONE }).getByRole('button', { name: 'Copy your text' }).click();
  await page.getByText('Text copied').waitFor();
  return page.evaluate<string>('navigator.clipboard.readText()');
}

t.test('the widget says in words what is wrong', { skip: skipReason }, async (t) => {
  const folder = await initFolder({
    rateLimit: { perMinute: 1_000_000 },
    demo: true,
    shutdown: { closeSpreadSeconds: 0 },
  });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startCluster({ workers: 2, folder });
  t.teardown(() => cluster.kill());
  const browser = await openBrowser(t);
  const context = await browser.newContext({ viewport, permissions: ['clipboard-read', 'clipboard-write'] });

  await t.test('a folder of `collab init` has the author of the demo page', async (t) => {
    t.equal((await api(cluster, 'GET', '/users/ci-bot')).status, 200);
    await thread(cluster, 'By the bot');
  });
  const bob = await openDemo(t, context, cluster, 'bob', /status of 4\d\d/);

  await t.test('attributes that cannot be right', async (t) => {
    for (const [attributes, expected] of [
      ['publishable-key="abc"', 'The comments are not set up: publishable-key must be a key that begins with pk_'],
      ['publishable-key="sk_x"', 'The comments are not set up: publishable-key is a secret key'],
      [
        'publishable-key="pk_x" base-url="not a url"',
        'The comments are not set up: base-url must begin with https:// or http://',
      ],
      ['', 'The comments are not set up: the attribute publishable-key is missing.'],
    ] as const) {
      const page = await openPage(t, context, await serve(t, cluster, `room="demo" token="x" ${attributes}`));
      await page.getByRole('alert').getByText(expected).waitFor();
      await page.close();
    }
    const german = await openPage(
      t,
      context,
      await serve(t, cluster, 'room="demo" token="x" publishable-key="abc"', {}, 'de'),
    );
    const alert = german.getByRole('alert').getByText('Die Kommentare sind nicht eingerichtet: publishable-key must');
    await alert.waitFor();
    const box = await alert.boundingBox();
    t.ok(box !== null && box.x > 600 && box.y > 600, 'in the corner of the toolbar');
    const { publishableKey, token } = (await (await fetch(`${cluster.url}/demo/session?user=bob`)).json()) as {
      publishableKey: string;
      token: string;
    };
    await german.evaluate(
      `Object.assign(document.querySelector('collab-comments'), { publishableKey: '${publishableKey}', token: '${token}' })`,
    );
    await live(german);
    t.equal(await german.getByRole('alert').count(), 0, 'gone once the attribute is right');
    await german.close();
  });

  await t.test('a thread that is deleted while a reply is typed, and one without a word', async (t) => {
    for (const typed of ['Half of a reply', '']) {
      const id = await thread(cluster, 'Soon gone');
      await pin(bob, 'Soon gone').click();
      await field(bob).fill(typed);
      await api(cluster, 'DELETE', `/threads/${id}`);
      await bob.locator('.toast', { hasText: GONE }).waitFor();
      t.equal(await popover(bob).count(), 0);
      if (typed === '') t.equal(await bob.getByRole('button', { name: 'Copy your text' }).count(), 0);
      else t.equal(await copied(bob), typed);
      for (const button of await bob.getByRole('button', { name: 'Dismiss' }).all()) await button.click();
    }
  });

  await t.test('a comment that is deleted while it is edited', async (t) => {
    await thread(cluster, 'Edited here');
    await pin(bob, 'Edited here').click();
    await field(bob).fill('First version');
    await field(bob).press('Enter');
    await commentMenu(bob, commentWith(bob, 'First version'), 'Edit');
    await bob.getByLabel('Edit comment').fill('Second version');
    const id = await popover(bob).locator('.comment').nth(1).getAttribute('data-comment');
    await api(cluster, 'DELETE', `/comments/${id}`);
    t.equal(await copied(bob), 'Second version');
    t.equal(await popover(bob).locator('.comment').count(), 1, 'the thread stays open');
    await bob.keyboard.press('Escape');
  });

  await t.test('a link to a thread that is not there, also in German', async () => {
    await bob.goto(`${cluster.url}/demo/page?user=bob#collab=th_gone`);
    await bob.reload();
    await bob.locator('.toast', { hasText: GONE }).waitFor();
    await live(bob);
    await bob.evaluate(`document.querySelector('collab-comments').setAttribute('locale', 'de')`);
    await bob.getByRole('button', { name: 'Kommentar hinzufügen' }).waitFor();
    await bob.evaluate(`location.hash = 'collab=th_other'`);
    await bob.locator('.toast', { hasText: 'Das wurde inzwischen gelöscht.' }).waitFor();
  });

  await t.test('an empty file is named in the language of the page', async () => {
    await bob
      .getByRole('button', { name: /Thread von .*Edited here/ })
      .and(bob.locator('.pin'))
      .click();
    const attach = popover(bob).locator('input[type=file]');
    await attach.setInputFiles({ name: 'nothing.png', mimeType: 'image/png', buffer: Buffer.alloc(0) });
    await bob.getByText('nothing.png kann nicht angehängt werden: Die Datei ist leer oder beschädigt.').waitFor();
  });

  await t.test('a file that cannot be uploaded without a connection is named', async () => {
    const attach = popover(bob).locator('input[type=file]');
    await bob.context().setOffline(true);
    await attach.setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from('x') });
    await bob.getByText('photo.png wurde nicht hochgeladen: Es gibt keine Verbindung.').waitFor();
    await bob.context().setOffline(false);
    await bob.locator('collab-comments .connection').waitFor({ state: 'detached' });
  });

  await t.test(
    'times are in the language of the texts: in English on a page in Persian, until it has Persian texts',
    async (t) => {
      const { publishableKey, token } = (await (await fetch(`${cluster.url}/demo/session?user=bob`)).json()) as {
        publishableKey: string;
        token: string;
      };
      const page = await openPage(
        t,
        context,
        await serve(t, cluster, `publishable-key="${publishableKey}" token="${token}" room="demo"`, {}, 'fa'),
      );
      await live(page);
      await pin(page, 'Edited here').click();
      const time = popover(page).locator('time').first();
      t.match(await time.textContent(), /^(now|.* ago)$/);
      await page.evaluate(`document.querySelector('collab-comments').strings = { reply: 'پاسخ' }`);
      await popover(page).getByRole('button', { name: 'پاسخ' }).waitFor();
      await until(async () => !/[a-z]/.test((await time.textContent()) ?? 'a'));
      await page.close();
    },
  );

  await t.test('a policy of trusted types needs to allow the templates, and nothing else', async (t) => {
    const { publishableKey, token } = (await (await fetch(`${cluster.url}/demo/session?user=bob`)).json()) as {
      publishableKey: string;
      token: string;
    };
    const policy = { 'Content-Security-Policy': "require-trusted-types-for 'script'; trusted-types lit-html" };
    const page = await openPage(
      t,
      context,
      await serve(t, cluster, `publishable-key="${publishableKey}" token="${token}" room="demo"`, policy),
    );
    await live(page);
    await pin(page, 'Edited here').click();
    await field(page).waitFor();
    await page.getByRole('button', { name: /Show comments/ }).click();
    await until(async () => (await page.locator('.item').count()) > 0);
  });
});
