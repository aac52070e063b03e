import { rmSync } from 'node:fs';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { initFolder, startCluster, until } from '../helpers/cluster.ts';
import { api, field, live, openDemo, pin, popover } from '../helpers/widget-page.ts';

const rules = [
  { type: 'words', words: ['casino'], action: 'reject', message: 'Advertising is not allowed.' },
  { type: 'words', words: ['perhaps'], action: 'hold' },
];

t.test('the widget tells authors what moderation does with their comments', { skip: skipReason }, async (t) => {
  const folder = await initFolder({ demo: true, shutdown: { closeSpreadSeconds: 0 }, plugins: [{ use: 'moderation-rules', config: { rules } }] });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startCluster({ workers: 1, folder });
  t.teardown(() => cluster.kill());
  await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body: 'Reply here', position: { x: 0.5, y: 0.3 } });
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

  await t.test('a held comment stays in the thread of its author, and the message says when it appears for others', async () => {
    await field(bob).fill('Perhaps this one');
    await field(bob).press('Enter');
    await bob.locator('.toast', { hasText: 'A moderator has to approve your comment.' }).waitFor();
    await popover(bob).getByText('Perhaps this one').waitFor();
  });

  await t.test('the author of a comment that a moderator rejects reads why', async () => {
    const { items } = (await (await api(cluster, 'GET', '/moderation')).json()) as { items: readonly { readonly id: string }[] };
    await api(cluster, 'POST', `/moderation/${items[0]?.id}/reject`, { reason: 'Too vague' });
    await bob.locator('.toast', { hasText: 'A moderator rejected your comment: Too vague' }).waitFor();
    await popover(bob).locator('.comment', { hasText: 'Perhaps this one' }).waitFor({ state: 'detached' });
  });

  const menu = async (text: string, action: string): Promise<void> => {
    const comment = popover(bob).locator('.comment', { hasText: text });
    await comment.hover();
    await comment.getByRole('button', { name: 'More actions' }).click();
    await bob.getByRole('menuitem', { name: action }).click();
  };
  const held = async (): Promise<readonly { readonly id: string; readonly comment: { readonly body: string } }[]> =>
    ((await (await api(cluster, 'GET', '/moderation')).json()) as { items: { id: string; comment: { body: string } }[] }).items;

  await t.test('what was rejected stays in the thread for its author, with the reason, until it is dismissed', async (t) => {
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
  });

  await t.test('a held comment is shown as pending, after a reload too; its author can edit and withdraw it', async (t) => {
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
  });

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
    await popover(bob).locator('.comment', { hasText: /Certain/ }).waitFor();
    await until(async () => (await held()).length === 0);
  });

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
    const { items } = (await (await api(cluster, 'GET', '/moderation?state=reported')).json()) as { items: { reports: { reason: string; userId: string }[] }[] };
    t.match(items, [{ reports: [{ reason: 'Off topic', userId: 'bob' }] }]);
  });
});
