import { rmSync } from 'node:fs';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { initFolder, startCluster } from '../helpers/cluster.ts';
import { api, field, openDemo, pin, popover } from '../helpers/widget-page.ts';

const rules = [
  { type: 'words', words: ['casino'], action: 'reject', message: 'Advertising is not allowed.' },
  { type: 'words', words: ['perhaps'], action: 'hold' },
];

t.test('the widget tells authors what moderation does with their comments', { skip: skipReason, timeout: 240_000 }, async (t) => {
  const folder = await initFolder({ demo: true, shutdown: { closeSpreadSeconds: 0 }, plugins: [{ use: 'moderation-rules', config: { rules } }] });
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startCluster({ workers: 1, folder });
  t.teardown(() => cluster.stop());
  await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body: 'Reply here', position: { x: 0.5, y: 0.3 } });
  const browser = await openBrowser(t);
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
  context.setDefaultTimeout(10_000);
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
    await popover(bob).getByText('Perhaps this one').waitFor({ state: 'detached' });
  });
});
