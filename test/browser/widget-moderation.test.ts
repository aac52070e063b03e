import { rmSync } from 'node:fs';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { initFolder, startCluster, until } from '../helpers/cluster.ts';
import { servePage } from '../helpers/own-page.ts';
import { api, commentMenu, field, live, openDemo, openPage, pin, popover, violations } from '../helpers/widget-page.ts';

const rules = [
  { type: 'words', words: ['casino'], action: 'reject', message: 'Advertising is not allowed.' },
  { type: 'words', words: ['perhaps'], action: 'hold' },
];

t.test('the widget tells authors what moderation does with their comments', { skip: skipReason }, async (t) => {
  const folder = await initFolder({
    demo: true,
    shutdown: { closeSpreadSeconds: 0 },
    plugins: [{ use: 'moderation-rules', config: { rules } }],
  });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startCluster({ workers: 1, folder });
  t.teardown(() => cluster.kill());
  const {
    thread: { id: threadId },
  } = (await (
    await api(cluster, 'POST', '/rooms/demo/threads', {
      userId: 'ci-bot',
      body: 'Reply here',
      position: { x: 0.5, y: 0.3 },
    })
  ).json()) as { thread: { id: string } };
  const browser = await openBrowser(t);
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
  const bob = await openDemo(t, context, cluster, 'bob', /status of 4\d\d/);
  await pin(bob, 'Reply here').click();

  await t.test('a refused comment stays in the field, with the reason of the rule', async (t) => {
    await field(bob).fill('Visit my casino');
    await field(bob).press('Enter');
    await bob.locator('.toast', { hasText: 'Advertising is not allowed.' }).waitFor();
    t.equal(await field(bob).inputValue(), 'Visit my casino');
  });

  await t.test(
    'a held comment stays in the thread of its author, and the message says when it appears for others',
    async () => {
      await field(bob).fill('Perhaps this one');
      await field(bob).press('Enter');
      await bob.locator('.toast', { hasText: 'A moderator has to approve your comment.' }).waitFor();
      await popover(bob).getByText('Perhaps this one').waitFor();
    },
  );

  await t.test('the author of a comment that a moderator rejects reads why', async () => {
    const { items } = (await (await api(cluster, 'GET', '/moderation')).json()) as {
      items: readonly { readonly id: string }[];
    };
    await api(cluster, 'POST', `/moderation/${items[0]?.id}/reject`, { reason: 'Too vague' });
    await bob.locator('.toast', { hasText: 'A moderator rejected your comment: Too vague' }).waitFor();
    await popover(bob).locator('.comment', { hasText: 'Perhaps this one' }).waitFor({ state: 'detached' });
  });

  const menu = (text: string, action: string): Promise<void> =>
    commentMenu(bob, popover(bob).locator('.comment', { hasText: text }), action);
  const held = async (): Promise<readonly { readonly id: string; readonly comment: { readonly body: string } }[]> =>
    (
      (await (await api(cluster, 'GET', '/moderation')).json()) as {
        items: { id: string; comment: { body: string } }[];
      }
    ).items;

  await t.test(
    'what was rejected stays in the thread for its author, with the reason, until it is dismissed',
    async (t) => {
      const card = popover(bob).locator('.rejection');
      await card.getByText('Reason: Too vague').waitFor();
      await bob.reload();
      await live(bob);
      await pin(bob, 'Reply here').click();
      await card.getByText('Perhaps this one').waitFor();
      await card.getByRole('button', { name: 'Dismiss' }).click();
      await card.waitFor({ state: 'detached' });
      await bob.reload();
      await live(bob);
      await pin(bob, 'Reply here').click();
      await popover(bob).waitFor();
      t.equal(await card.count(), 0);
    },
  );

  await t.test(
    'a held comment is shown as pending, after a reload too; its author can edit and withdraw it',
    async (t) => {
      await field(bob).fill('Perhaps tomorrow');
      await field(bob).press('Enter');
      await until(async () => (await held()).length === 1);
      await bob.reload();
      await live(bob);
      await pin(bob, 'Reply here').click();
      const comment = popover(bob).locator('.comment', { hasText: /Perhaps/ });
      await comment.getByText('Pending', { exact: true }).waitFor();
      await comment.getByText('Only you see this until a moderator approves it.').waitFor();
      t.equal(await comment.getByRole('button', { name: 'Add a reaction' }).count(), 0);
      await menu('Perhaps tomorrow', 'Edit');
      await popover(bob).getByLabel('Edit comment').fill('Perhaps today');
      await bob.keyboard.press('Enter');
      await until(async () => (await held())[0]?.comment.body === 'Perhaps today');
      await menu('Perhaps today', 'Withdraw');
      await bob.getByText('Comment withdrawn').waitFor();
      await bob.locator('.toast', { hasText: 'Comment withdrawn' }).getByRole('button', { name: 'Dismiss' }).click();
      await until(async () => (await held()).length === 0);
    },
  );

  await t.test('a held edit is withdrawn alone; others see the earlier text until then', async () => {
    await field(bob).fill('Certain');
    await field(bob).press('Enter');
    await popover(bob).locator('.comment:not(.pending)', { hasText: 'Certain' }).waitFor();
    await menu('Certain', 'Edit');
    await popover(bob).getByLabel('Edit comment').fill('Perhaps certain');
    await bob.keyboard.press('Enter');
    await popover(bob).getByText('Others see the earlier text until a moderator approves your edit.').waitFor();
    await menu('Perhaps certain', 'Withdraw the edit');
    await popover(bob).getByText('Pending', { exact: true }).waitFor({ state: 'detached' });
    await popover(bob)
      .locator('.comment', { hasText: /Certain/ })
      .waitFor();
    await until(async () => (await held()).length === 0);
  });

  await t.test(
    'the author of a held comment hears when it goes with its thread, and that nobody rejected it',
    async () => {
      const { thread } = (await (
        await api(cluster, 'POST', '/rooms/demo/threads', {
          userId: 'ann',
          body: 'Goes soon',
          position: { x: 0.6, y: 0.6 },
        })
      ).json()) as { thread: { id: string } };
      const before = (await held()).length;
      await bob.evaluate(`document.querySelector('collab-comments').openThread('${thread.id}')`);
      await popover(bob).getByText('Goes soon').waitFor();
      await field(bob).fill('Perhaps never');
      await field(bob).press('Enter');
      await until(async () => (await held()).length === before + 1);
      await api(cluster, 'DELETE', `/threads/${thread.id}`);
      const toast = bob.locator('.toast', { hasText: 'was deleted before a moderator approved it' });
      await toast.waitFor();
      await toast.getByRole('button', { name: 'Dismiss' }).click();
      await pin(bob, 'Reply here').click();
      await popover(bob).getByText('Reply here').first().waitFor();
    },
  );

  await t.test('a comment of somebody else is reported with a reason, once', async (t) => {
    const report = async (answer: string): Promise<void> => {
      await menu('Reply here', 'Report');
      const form = popover(bob).getByLabel(/What is wrong with this comment/);
      await form.fill('Off topic');
      await form.press('Enter');
      await bob.locator('.toast', { hasText: answer }).waitFor();
      await form.waitFor({ state: 'detached' });
    };
    await report('Reported. Moderators will look at it.');
    await report('You have reported this comment already.');
    const { items } = (await (await api(cluster, 'GET', '/moderation?state=reported')).json()) as {
      items: { reports: { reason: string; userId: string }[] }[];
    };
    t.match(items, [{ reports: [{ reason: 'Off topic', userId: 'bob' }] }]);
  });

  const { token } = (await (
    await api(cluster, 'POST', '/users/mod/tokens', { name: 'Mod', role: 'moderator' })
  ).json()) as { token: string };
  const mod = await openPage(
    t,
    context,
    await servePage(t, cluster, '<main><h1>Orders</h1></main>', '', token),
    /status of 409/,
  );
  await mod.evaluate("document.querySelector('collab-comments').room = 'demo'");
  await live(mod);
  const queue = mod.getByRole('complementary', { name: 'Moderation' });
  const entry = mod.locator('collab-comments .queue-entry');
  const card = (text: string) => queue.getByRole('article').filter({ hasText: text });
  const showsFocus = (text: string) =>
    mod.waitForFunction(
      `document.querySelector('collab-comments').shadowRoot.activeElement?.textContent.includes('${text}')`,
    );

  await t.test('the panel tells members nothing of the queue, and moderators how much waits in it, live', async (t) => {
    await bob.evaluate("document.querySelector('collab-comments').togglePanel(true)");
    await bob.locator('collab-comments .panel').waitFor();
    t.equal(await bob.locator('collab-comments .queue-entry').count(), 0);
    await mod.evaluate("document.querySelector('collab-comments').togglePanel(true)");
    await entry.getByText('1 comment waits for a decision').waitFor();
    for (const body of ['Perhaps one', 'Perhaps two', 'Perhaps three']) {
      await field(bob).fill(body);
      await field(bob).press('Enter');
      await popover(bob).getByText(body).waitFor();
    }
    await entry.getByText('4 comments wait for a decision').waitFor();
  });

  await t.test('a moderator approves what is held, or rejects it with a reason, by the keyboard', async (t) => {
    await entry.press('Enter');
    await card('Perhaps one').getByText('Held by moderation-rules').waitFor();
    t.strictSame(await violations(mod), []);
    await card('Perhaps one').getByRole('button', { name: 'Approve' }).press('Enter');
    await mod.locator('.toast', { hasText: 'Approved' }).waitFor();
    await card('Perhaps one').waitFor({ state: 'detached' });
    await showsFocus('Perhaps two');
    await popover(bob)
      .locator('.comment', { hasText: 'Perhaps one' })
      .getByText('Pending', { exact: true })
      .waitFor({ state: 'detached' });
    await card('Perhaps two').getByRole('button', { name: 'Reject' }).press('Enter');
    const reason = card('Perhaps two').getByLabel('Why? The author will read this.');
    await reason.press('Enter');
    t.equal((await held()).length, 2, 'not without a reason');
    await reason.fill('Say it plainly');
    t.strictSame(await violations(mod), []);
    await reason.press('Enter');
    await card('Perhaps two').waitFor({ state: 'detached' });
    await bob.locator('.toast', { hasText: 'A moderator rejected your comment: Say it plainly' }).waitFor();
  });

  await t.test('what somebody else has decided meanwhile says so', async () => {
    const [item] = await held();
    await mod.evaluate(
      'globalThis.realFetch = fetch; globalThis.fetch = async (url, init) => (/moderation.(state|mod_[^/]+$)/.test(url) ? new Promise(() => {}) : realFetch(url, init))',
    );
    await api(cluster, 'POST', `/moderation/${item?.id}/reject`, { reason: 'No' });
    await card('Perhaps three').getByRole('button', { name: 'Approve' }).click();
    await mod.locator('.toast', { hasText: 'Somebody has decided this already.' }).waitFor();
    await mod.evaluate('globalThis.fetch = realFetch');
  });

  await t.test('reports are dismissed, or the comment is removed', async (t) => {
    await mod.reload();
    await mod.evaluate("document.querySelector('collab-comments').room = 'demo'");
    await live(mod);
    await mod.evaluate("document.querySelector('collab-comments').togglePanel(true)");
    await entry.getByText('1 comment waits for a decision').click();
    await card('Reply here').getByText('Bob: Off topic').waitFor();
    await mod.setViewportSize({ width: 320, height: 640 });
    t.equal(
      await mod.evaluate(
        "[...document.querySelector('collab-comments').shadowRoot.querySelectorAll('.panel *')].filter((each) => { const { left, right } = each.getBoundingClientRect(); return right > 321 || left < -1; }).length",
      ),
      0,
    );
    t.strictSame(await violations(mod), []);
    await card('Reply here').getByRole('button', { name: 'Keep' }).click();
    await queue.getByText('Nothing is held').waitFor();
    const { comment } = (await (
      await api(cluster, 'POST', `/threads/${threadId}/comments`, { userId: 'ci-bot', body: 'Buy now' })
    ).json()) as { comment: { id: string } };
    await api(cluster, 'POST', `/comments/${comment.id}/report`, { reason: 'Advertising' });
    await card('Buy now').getByText('Someone: Advertising').waitFor();
    await card('Buy now').getByRole('button', { name: 'Remove' }).click();
    await card('Buy now').getByLabel('Why? The author will read this.').fill('Advertising');
    await mod.keyboard.press('Enter');
    await popover(bob).locator('.comment', { hasText: 'Buy now' }).waitFor({ state: 'detached' });
    await mod.keyboard.press('Escape');
    await entry.getByText('Moderation', { exact: true }).waitFor();
  });
});
