import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { servePage } from '../helpers/own-page.ts';
import {
  api,
  commentMenu,
  commentWith,
  field,
  live,
  openPage,
  pin,
  popover,
  violations,
} from '../helpers/widget-page.ts';

t.test('the widget shows what the role of the user may do', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1200, height: 900 } });
  const create = async (
    body: string,
    x: number,
    userId = 'ci-bot',
  ): Promise<{ readonly id: string; readonly commentId: string }> => {
    const { thread } = (await (
      await api(cluster, 'POST', '/rooms/own/threads', { userId, body, position: { x, y: 0.5 } })
    ).json()) as { thread: { id: string } };
    const { items } = (await (await api(cluster, 'GET', `/threads/${thread.id}/comments`)).json()) as {
      items: { id: string }[];
    };
    return { id: thread.id, commentId: items[0]?.id ?? '' };
  };
  const open = async (userId: string, role: string, expected?: RegExp): Promise<Page> => {
    const { token } = (await (
      await api(cluster, 'POST', `/users/${userId}/tokens`, { name: userId, role })
    ).json()) as { token: string };
    const body = '<main><h1>Orders</h1><p style="height: 600px">All orders of this week.</p></main>';
    const page = await openPage(t, context, await servePage(t, cluster, body, '', token), expected);
    await live(page);
    // The events of the element, in order.
    await page.evaluate(
      `globalThis.events = []; for (const name of ['open', 'close']) addEventListener('collab-thread-' + name, ({ detail }) => events.push(name + ' ' + detail.threadId))`,
    );
    return page;
  };
  const said = (page: Page): Promise<string[]> => page.locator('collab-comments [role=log] p').allInnerTexts();

  await t.test(
    'a viewer reads, is told why there is no field, and is offered nothing that would be refused',
    async (t) => {
      const { commentId } = await create('Read me', 0.3);
      await api(cluster, 'POST', `/comments/${commentId}/reactions`, { userId: 'ci-bot', emoji: '🎉' });
      const page = await open('victor', 'viewer');
      await pin(page, 'Read me').click();
      await popover(page)
        .getByText('You can read along here. To comment, ask the owner of this page for access.')
        .waitFor();
      await popover(page).getByRole('img', { name: '🎉 1' }).waitFor();
      for (const name of ['Resolve', 'Add a reaction', /🎉/, 'Reply'])
        t.equal(await popover(page).getByRole('button', { name }).count(), 0, String(name));
      t.equal(await field(page).count(), 0);
      await popover(page).getByRole('button', { name: 'More actions' }).click();
      t.strictSame(await page.getByRole('menuitem').allInnerTexts(), ['Copy link']);
      t.strictSame(await violations(page), []);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      t.equal(await page.getByRole('button', { name: 'Add a comment' }).count(), 0);
      await page.evaluate("document.querySelector('collab-comments').startComment()");
      await page.locator('.toast', { hasText: 'You can read along here.' }).waitFor();
      await page.close();
    },
  );

  await t.test('a moderator edits and deletes what others wrote', async (t) => {
    const { id } = await create('Of somebody else', 0.5);
    await api(cluster, 'POST', `/threads/${id}/comments`, { userId: 'ci-bot', body: 'To be deleted' });
    const page = await open('mona', 'moderator');
    await pin(page, 'Of somebody else').click();
    const act = (text: string, action: string): Promise<void> => commentMenu(page, commentWith(page, text), action);
    await act('Of somebody else', 'Edit');
    await popover(page).getByLabel('Edit comment').fill('Changed by a moderator');
    await page.keyboard.press('Enter');
    await popover(page).locator('.comment:not(.pending)', { hasText: 'Changed by a moderator' }).waitFor();
    await act('To be deleted', 'Delete');
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await until(
      async () => !(await (await api(cluster, 'GET', `/threads/${id}/comments`)).text()).includes('To be deleted'),
    );
    t.match(await (await api(cluster, 'GET', `/threads/${id}/comments`)).text(), 'Changed by a moderator');
    await page.close();
  });

  const ann = await open('ann', 'member', /status of 4\d\d/);

  await t.test('Resolve closes the thread once the server has accepted it, and its message can undo it', async (t) => {
    const { id } = await create('Settled', 0.7);
    await ann.evaluate('events.length = 0');
    await pin(ann, 'Settled').click();
    await popover(ann).getByRole('button', { name: 'Resolve' }).click();
    await ann.locator('.toast', { hasText: 'Thread resolved' }).waitFor();
    await popover(ann).waitFor({ state: 'detached' });
    await ann.getByRole('button', { name: 'Undo' }).click();
    await popover(ann).getByRole('button', { name: 'Resolve' }).waitFor();
    await until(
      async () =>
        ((await (await api(cluster, 'GET', `/threads/${id}`)).json()) as { thread: { resolved: boolean } }).thread
          .resolved === false,
    );
    await ann.keyboard.press('Escape');
    t.strictSame(await ann.evaluate('events'), [`open ${id}`, `close ${id}`, `open ${id}`, `close ${id}`]);
  });

  await t.test('a refusal leaves the thread open', async () => {
    const { id } = await create('Not for Ann', 0.9);
    await pin(ann, 'Not for Ann').click();
    await popover(ann).waitFor();
    await ann.evaluate(
      "document.querySelector('collab-comments').shadowRoot.querySelector('.popover').dataset.kept = ''",
    );
    await ann.evaluate(`(() => {
      const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (text) {
        send.call(this, text.includes('thread.resolve') ? text.replace('${id}', 'th_nowhere_at_all') : text);
      };
    })()`);
    await popover(ann).getByRole('button', { name: 'Resolve' }).click();
    await ann.locator('.toast', { hasText: 'This was deleted meanwhile.' }).waitFor();
    await ann.locator('.popover[data-kept]').getByRole('button', { name: 'Resolve' }).waitFor();
    await ann.keyboard.press('Escape');
  });

  await t.test('opening another thread closes the first for the page, and a new thread is opened', async (t) => {
    await ann.evaluate('events.length = 0');
    await pin(ann, 'Settled').click();
    await pin(ann, 'Not for Ann').click();
    await ann.evaluate("document.querySelector('collab-comments').startComment()");
    await ann.getByRole('application').waitFor();
    await ann.keyboard.press('Enter');
    await ann.getByLabel('Add a comment…').fill('Brand new');
    await ann.keyboard.press('Enter');
    await pin(ann, 'Brand new').waitFor();
    const names = (await ann.evaluate<string[]>('events')).map((text) => text.split(' ')[0]);
    t.strictSame(names, ['open', 'close', 'open', 'close', 'open']);
    await ann.keyboard.press('Escape');
  });

  await t.test('each reply of others is announced, with the name, which the page may not know before', async (t) => {
    const { id } = await create('To be announced', 0.15);
    await until(async () => (await said(ann)).some((text) => text.endsWith('started a thread')));
    await api(cluster, 'PUT', '/users/user-4711', { name: 'Zoë' });
    const before = (await said(ann)).length;
    for (const body of ['one', 'two'])
      await api(cluster, 'POST', `/threads/${id}/comments`, { userId: 'user-4711', body });
    await until(async () => (await said(ann)).filter((text) => text === 'Zoë replied').length === 2);
    t.ok(before < 5);
    await api(cluster, 'PATCH', `/threads/${id}`, { resolved: true });
    await until(async () => (await said(ann)).at(-1) === 'Someone resolved a thread');
    t.notMatch((await said(ann)).join(), 'user-4711');
  });
});
