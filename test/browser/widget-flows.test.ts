import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { startCluster, until } from '../helpers/cluster.ts';
import { api, field, openDemo, pin, popover } from '../helpers/widget-page.ts';

const viewport = { width: 1200, height: 900 };

/** Replies in the open thread, waits until the server has it, and returns the id of the comment. */
async function reply(page: Page, text: string): Promise<string> {
  await field(page).fill(text);
  await field(page).press('Enter');
  const comment = popover(page).locator('.comment:not(.pending)', { hasText: text });
  await comment.waitFor();
  return (await comment.getAttribute('data-comment')) ?? '';
}

/** Deletes a comment of the open thread as its author does. */
async function remove(page: Page, text: string): Promise<void> {
  const comment = popover(page).locator('.comment', { hasText: text });
  await comment.hover();
  await comment.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await comment.waitFor({ state: 'detached' });
  await page.getByText('Comment deleted').waitFor();
}

t.test('what two users do on one page', { skip: skipReason, timeout: 180_000 }, async (t) => {
  const cluster = await startCluster({ workers: 2, config: { rateLimit: { perMinute: 1_000_000 }, demo: true, shutdown: { closeSpreadSeconds: 0 } } });
  t.teardown(() => cluster.stop());
  const browser = await openBrowser(t);
  const context = await browser.newContext({ viewport });
  context.setDefaultTimeout(15_000);
  const ann = await openDemo(t, context, cluster, 'ann');
  const post = async (body: string, x: number, mentions: string[] = []): Promise<string> => {
    const answer = (await (await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body, position: { x, y: 0.3 }, mentions })).json()) as { thread: { id: string } };
    await pin(ann, body).waitFor();
    return answer.thread.id;
  };
  const onServer = async (threadId: string): Promise<string[]> => {
    const { items } = (await (await api(cluster, 'GET', `/threads/${threadId}/comments`)).json()) as { items: { id: string }[] };
    return items.map(({ id }) => id);
  };

  await t.test('the other user is shown while they are there', async () => {
    const other = await browser.newContext({ viewport });
    await openDemo(t, other, cluster, 'bob');
    await ann.getByRole('img', { name: 'Online now: Bob' }).waitFor();
    await other.close();
    await ann.getByRole('img', { name: 'Online now: Bob' }).waitFor({ state: 'detached' });
  });

  const threadId = await post('With replies', 0.2);

  await t.test('Undo brings a deleted comment back; without it the server deletes the comment', async (t) => {
    await pin(ann, 'With replies').click();
    const id = await reply(ann, 'Perhaps deleted');
    await remove(ann, 'Perhaps deleted');
    t.ok((await onServer(threadId)).includes(id), 'not sent yet');
    await ann.getByRole('button', { name: 'Undo' }).click();
    await popover(ann).getByText('Perhaps deleted').waitFor();
    t.ok((await onServer(threadId)).includes(id));
    await remove(ann, 'Perhaps deleted');
    await ann.getByText('Comment deleted').waitFor({ state: 'detached' });
    await until(async () => !(await onServer(threadId)).includes(id));
    t.equal(await popover(ann).locator('.comment').count(), 1);
  });

  await t.test('a change by REST is seen in the open thread', async () => {
    const [first = ''] = await onServer(threadId);
    await api(cluster, 'PATCH', `/comments/${first}`, { body: 'Changed by **REST**' });
    const changed = popover(ann).locator('.comment', { hasText: 'Changed by REST' });
    await changed.locator('strong', { hasText: 'REST' }).waitFor();
    await changed.getByText('edited', { exact: true }).waitFor();
  });

  await t.test('the lists of what is mine and of where I am mentioned', async (t) => {
    await reply(ann, 'My own words');
    await ann.keyboard.press('Escape');
    await post('For Ann', 0.5, ['ann']);
    await ann.getByRole('button', { name: /Show comments/ }).click();
    const listed = async (filter: string): Promise<string[]> => {
      await ann.getByRole('radio', { name: filter }).click();
      // Not the inner texts, which are empty until the list is painted (`content-visibility`).
      return ann.locator('.panel .item-body').allTextContents();
    };
    t.same((await listed('Open')).toSorted(), ['Changed by REST', 'For Ann']);
    t.same(await listed('Mine'), ['Changed by REST']);
    t.same(await listed('Mentions'), ['For Ann']);
    await ann.getByRole('complementary').getByRole('button', { name: 'Close' }).click();
  });

  await t.test('pins that are too close are one, which lists its threads', async (t) => {
    await post('Crowded one', 0.8);
    await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body: 'Crowded two', position: { x: 0.801, y: 0.3 } });
    const crowd = ann.getByRole('button', { name: '2 threads here' });
    await crowd.waitFor();
    const offset = await ann.evaluate<number>(`(() => {
      const circle = document.querySelector('collab-comments').shadowRoot.querySelector('.pin.cluster .avatar');
      const number = document.createRange();
      number.selectNodeContents(circle);
      const [a, b] = [circle.getBoundingClientRect(), number.getBoundingClientRect()];
      return Math.abs(a.top + a.bottom - b.top - b.bottom) / 2;
    })()`);
    t.ok(offset <= 1, 'the number is in the middle of its circle');
    await crowd.click();
    const list = ann.getByRole('dialog', { name: '2 threads here' });
    t.same((await list.locator('.item-body').allTextContents()).toSorted(), ['Crowded one', 'Crowded two']);
    await list.getByText('Crowded two').click();
    await popover(ann).locator('.comment', { hasText: 'Crowded two' }).waitFor();
    await pin(ann, 'Crowded one').waitFor();
    t.equal(await crowd.count(), 0, 'the open thread has a pin of its own');
  });
});
