import { rmSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { collab, initFolder, startCluster, until } from '../helpers/cluster.ts';
import { serveHtml } from '../helpers/own-page.ts';
import { newBrowser } from '../helpers/push-receiver.ts';
import { api, live, openPage, popover, violations } from '../helpers/widget-page.ts';

/** The strictest policy that docs/widget.md allows. */
const policyFor = (url: string): string =>
  `default-src 'none'; script-src ${url}; connect-src ${url} ${url.replace('http', 'ws')}; img-src blob:; media-src blob:; trusted-types lit-html; require-trusted-types-for 'script'`;

t.test('the inbox of the widget', { skip: skipReason }, async (t) => {
  const folder = await initFolder({
    rateLimit: { perMinute: 1_000_000 },
    demo: true,
    shutdown: { closeSpreadSeconds: 0 },
    plugins: [{ use: 'web-push', allowPrivate: true, config: { subject: 'mailto:ops@example.com' } }],
  });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startCluster({ workers: 1, folder });
  t.teardown(() => cluster.kill());
  t.equal((await collab('web-push', 'keys', '--env', 'default', '--dir', cluster.dir)).code, 0);

  const write = async (roomId: string, body: string, page: string | null = null): Promise<string> => {
    const position = { x: 0.5, y: 0.2, ...(page === null ? {} : { fingerprint: JSON.stringify({ page }) }) };
    return (
      (await (
        await api(cluster, 'POST', `/rooms/${roomId}/threads`, { userId: 'ci-bot', body, mentions: ['bob'], position })
      ).json()) as { thread: { id: string } }
    ).thread.id;
  };
  const unread = async (): Promise<number> =>
    ((await (await api(cluster, 'GET', '/users/bob/notifications')).json()) as { unreadCount: number }).unreadCount;
  const { token } = (await (await api(cluster, 'POST', '/users/bob/tokens', { name: 'Bob', ttl: 3_600 })).json()) as {
    token: string;
  };
  const attributes = `base-url="${cluster.url}" publishable-key="${cluster.keys.publishableKey}" room="own" token="${token}" push-worker="/push-worker.js"`;
  const html = `<!doctype html><html lang="en"><title>Own</title><script type="module" src="${cluster.url}/widget.js"></script><body><main><h1>Orders</h1></main><collab-comments ${attributes}></collab-comments>`;
  const address = await serveHtml(t, html, { 'Content-Security-Policy': policyFor(cluster.url) });
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1200, height: 900 } });
  const open = async (path = ''): Promise<Page> => {
    const page = await openPage(t, context, address + path);
    await live(page);
    return page;
  };
  const bell = (page: Page) => page.locator('collab-comments [part=bell]');
  const inbox = (page: Page) => page.getByRole('complementary', { name: /Notification/ });
  const item = (page: Page, text: string) => inbox(page).getByRole('listitem').filter({ hasText: text });
  const count = (page: Page, number: number) =>
    page
      .locator('collab-comments')
      .getByRole('button', {
        name: number === 0 ? 'Notifications' : `Notifications, ${number} unread`,
        exact: true,
        includeHidden: true,
      })
      .waitFor({ state: 'attached' });
  const focused = (page: Page): Promise<string> =>
    page.evaluate(
      "document.querySelector('collab-comments').shadowRoot.activeElement?.getAttribute('aria-label') ?? document.querySelector('collab-comments').shadowRoot.activeElement?.innerText ?? ''",
    );

  const bob = await open();
  await t.test('an empty inbox says what it is for, and Escape returns the focus to the bell', async (t) => {
    await bell(bob).click();
    await inbox(bob).getByText('No notifications').waitFor();
    t.strictSame(await violations(bob), []);
    await bob.keyboard.press('Escape');
    await inbox(bob).waitFor({ state: 'detached' });
    t.equal(await focused(bob), 'Notifications');
  });

  const here = await write('own', 'Look **here** @Bob', '/');
  await write('own', 'On the second page @Bob', '/second');
  await write('board', 'In another room @Bob');
  await write('plan', 'In a room with a page @Bob', '/plan');

  await t.test('the bell counts what is unread in all rooms, and says what comes from another room', async () => {
    await count(bob, 4);
    await bob
      .locator('collab-comments [role=log]')
      .getByText('CI mentioned you')
      .first()
      .waitFor({ state: 'attached' });
  });

  await t.test('the list shows who wrote what where; axe finds nothing', async (t) => {
    await bell(bob).click();
    await item(bob, 'Look here @Bob').getByText('CI mentioned you').waitFor();
    await item(bob, 'In another room @Bob').getByText('board').waitFor();
    t.equal(await inbox(bob).getByRole('listitem').count(), 4);
    t.match(
      await item(bob, 'On the second page').getByRole('link').getAttribute('href'),
      /\/second#collab=th_\w+\/cm_\w+$/,
    );
    t.match(await item(bob, 'In a room with a page').getByRole('link').getAttribute('href'), /\/plan#collab=/);
    t.strictSame(await violations(bob), []);
  });

  await t.test(
    'one is marked as read by the keyboard, on the server and in other tabs; the focus stays in the list',
    async (t) => {
      const other = await open();
      await count(other, 4);
      await inbox(bob).getByRole('button', { name: 'Unread', exact: true }).click();
      await inbox(bob).getByRole('button', { name: 'Unread', exact: true }).press('ArrowDown');
      t.match(await focused(bob), /In a room with a page/);
      await bob.keyboard.press('Tab');
      await bob.keyboard.press('Enter');
      await item(bob, 'In a room with a page').waitFor({ state: 'detached' });
      t.match(await focused(bob), /In another room/);
      await count(bob, 3);
      await count(other, 3);
      await until(async () => (await unread()) === 3);
      await other.close();
      await inbox(bob).getByRole('button', { name: 'All', exact: true }).click();
      t.equal(await inbox(bob).getByRole('listitem').count(), 4);
    },
  );

  await t.test('a notification opens its thread, says where it is, or leads to its page', async (t) => {
    await item(bob, 'In another room')
      .getByRole('button', { name: /In another room/ })
      .click();
    await bob.locator('.toast', { hasText: 'This thread is in board. Open that page to see it.' }).waitFor();
    await item(bob, 'Look here')
      .getByRole('button', { name: /Look here/ })
      .click();
    await popover(bob).getByText('here', { exact: true }).waitFor();
    await count(bob, 1);
    await bob.evaluate(
      "addEventListener('collab-notification-open', (event) => { event.preventDefault(); document.title = event.detail.roomId; }, { once: true })",
    );
    await item(bob, 'On the second page').getByRole('link').click();
    await bob.waitForFunction("document.title === 'own'");
    t.equal(bob.url(), address, 'the page may lead there by itself');
    await item(bob, 'On the second page').getByRole('link').click();
    await bob.waitForURL(/\/second#collab=/);
    await popover(bob).getByText('On the second page').waitFor();
    await until(async () => (await unread()) === 0);
  });

  await t.test('a thread is muted and followed in its menu, by the keyboard', async (t) => {
    const state = async (): Promise<string> =>
      ((await (await api(cluster, 'GET', `/users/bob/subscriptions/${here}`)).json()) as { state: string }).state;
    await bob.goto(`${address}#collab=${here}`);
    await popover(bob).getByText('Look').waitFor();
    const button = popover(bob).getByRole('button', { name: 'Notifications of this thread' });
    await button.press('Enter');
    await bob.getByRole('menuitemradio', { name: 'Only mentions of me', checked: true }).waitFor();
    t.strictSame(await violations(bob), []);
    await bob.keyboard.press('ArrowDown');
    await bob.keyboard.press('Enter');
    await until(async () => (await state()) === 'muted');
    t.equal(await focused(bob), 'Notifications of this thread');
    await button.press('Enter');
    await bob.getByRole('menuitemradio', { name: 'Nothing (mute)', checked: true }).waitFor();
    await bob.getByRole('menuitemradio', { name: 'Every comment' }).click();
    await until(async () => (await state()) === 'subscribed');
    await bob.keyboard.press('Escape');
  });

  await t.test('all are marked as read', async () => {
    await write('own', 'One more @Bob', '/');
    await write('board', 'And another @Bob');
    await count(bob, 2);
    await bob.evaluate("document.querySelector('collab-comments').toggleInbox(true)");
    await inbox(bob).getByRole('button', { name: 'Mark all as read' }).click();
    await count(bob, 0);
    await until(async () => (await unread()) === 0);
  });

  await t.test('the settings say what is delivered where, and keep a change', async (t) => {
    await inbox(bob).getByRole('button', { name: 'Notification settings' }).click();
    const replies = inbox(bob).getByRole('checkbox', { name: 'Email: Replies' });
    await replies.uncheck();
    await until(
      async () =>
        (
          (await (await api(cluster, 'GET', '/users/bob/notification-settings')).json()) as {
            email: { reply: boolean };
          }
        ).email.reply === false,
    );
    t.ok(await inbox(bob).getByRole('checkbox', { name: 'Email: Mentions' }).isChecked());
    t.strictSame(await violations(bob), []);
    await bob.keyboard.press('Escape');
    t.equal(await focused(bob), 'Notification settings');
    await inbox(bob).getByRole('button', { name: 'Notification settings' }).click();
    t.notOk(await replies.isChecked());
  });

  await t.test('push messages are turned on and off in this browser, with its permission', async (t) => {
    const { p256dh, auth } = newBrowser();
    const given = { endpoint: 'http://127.0.0.1/push/bob', keys: { p256dh, auth } };
    // The push services of browsers are on the internet.
    await bob.evaluate(`(() => {
      let subscription = null;
      const stub = { toJSON: () => (${JSON.stringify(given)}), endpoint: '${given.endpoint}', unsubscribe: async () => { subscription = null; } };
      const registration = { pushManager: { getSubscription: async () => subscription, subscribe: async (options) => { globalThis.asked = options; subscription = stub; return stub; } } };
      navigator.serviceWorker.getRegistration = async () => registration;
      globalThis.permission = 'denied';
      Notification.requestPermission = async () => globalThis.permission;
    })()`);
    await inbox(bob).getByRole('button', { name: 'Turn on' }).click();
    await bob.locator('.toast', { hasText: 'This browser blocks notifications of this site.' }).waitFor();
    await bob.evaluate("globalThis.permission = 'granted'");
    await inbox(bob).getByRole('button', { name: 'Turn on' }).click();
    await inbox(bob).getByRole('button', { name: 'Turn off' }).waitFor();
    t.match(await bob.evaluate('asked'), { userVisibleOnly: true, applicationServerKey: /^B[\w-]{86}$/ });
    await inbox(bob).getByRole('button', { name: 'Back to the notifications' }).click();
    await inbox(bob).getByRole('button', { name: 'Notification settings' }).click();
    await inbox(bob).getByRole('button', { name: 'Turn off' }).click();
    await inbox(bob).getByRole('button', { name: 'Turn on' }).waitFor();
  });

  await t.test('it fits a narrow window from right to left, and forced colours', async (t) => {
    await bob.keyboard.press('Escape');
    await bob.setViewportSize({ width: 320, height: 640 });
    await bob.evaluate("document.documentElement.dir = 'rtl'");
    await bob.emulateMedia({ forcedColors: 'active' });
    await item(bob, 'And another').waitFor();
    t.equal(await bob.evaluate('document.documentElement.scrollWidth'), 320);
    const outside = await bob.evaluate(
      "[...document.querySelector('collab-comments').shadowRoot.querySelectorAll('.panel *')].filter((each) => { const { left, right } = each.getBoundingClientRect(); return right > 321 || left < -1; }).length",
    );
    t.equal(outside, 0);
    await inbox(bob).getByRole('button', { name: 'All', exact: true }).press('ArrowDown');
    t.equal(
      await bob.evaluate(
        "getComputedStyle(document.querySelector('collab-comments').shadowRoot.activeElement).outlineStyle",
      ),
      'solid',
    );
    t.strictSame(await violations(bob), []);
  });

  await t.test('so does the list of all emoji, under the strict policy and by the keyboard', async (t) => {
    await bob.evaluate(`document.querySelector('collab-comments').openThread('${here}')`);
    const comment = popover(bob).locator('.comment').first();
    await comment.hover();
    await comment.getByRole('button', { name: 'Add a reaction' }).focus();
    await bob.keyboard.press('Enter');
    await popover(bob).getByRole('button', { name: 'More emoji' }).focus();
    await bob.keyboard.press('Enter');
    await popover(bob).getByLabel('Search emoji').waitFor();
    const outside =
      await bob.evaluate(`[...document.querySelector('collab-comments').shadowRoot.querySelectorAll('.all-emojis, .emoji-tools *, .emoji-group:first-child .emoji')]
      .filter((each) => { const { left, right, width } = each.getBoundingClientRect(); return right > 321 || left < -1 || (each.matches('button') && width < 24); })
      .map((each) => each.outerHTML)`);
    t.same(outside, []);
    t.equal(await bob.evaluate('document.documentElement.scrollWidth'), 320);
    // To check all of them takes axe half a minute.
    await popover(bob).getByLabel('Search emoji').fill('hand');
    await popover(bob).getByRole('button', { name: 'wave' }).waitFor();
    t.strictSame(await violations(bob), []);
    await bob.keyboard.press('ArrowDown');
    const first = await focused(bob);
    t.equal(
      await bob.evaluate(
        "getComputedStyle(document.querySelector('collab-comments').shadowRoot.activeElement).outlineStyle",
      ),
      'solid',
    );
    await bob.keyboard.press('ArrowLeft');
    const second = await focused(bob);
    t.not(second, first, 'the next one is on the left');
    await bob.keyboard.press('Enter');
    await popover(bob)
      .getByRole('button', { name: new RegExp(`^${second.split(' ')[0]} 1: `) })
      .waitFor();
    await popover(bob).getByRole('button', { name: 'Close' }).click();
    await inbox(bob).waitFor();
  });

  await t.test('what cannot be loaded says so, and is tried again', async () => {
    await context.setOffline(true);
    await bob.emulateMedia({ forcedColors: 'none' });
    await inbox(bob).getByRole('button', { name: 'Notification settings' }).click();
    await inbox(bob).getByText('The notifications could not be loaded.').waitFor();
    await context.setOffline(false);
    await inbox(bob)
      .getByRole('alert')
      .filter({ hasText: 'The notifications could not be loaded.' })
      .getByRole('button', { name: 'Try again' })
      .click();
    await inbox(bob).getByRole('checkbox', { name: 'Email: Replies' }).waitFor();
  });
});
