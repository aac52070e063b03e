import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { api, commentMenu, field, openDemo, pin, popover } from '../helpers/widget-page.ts';

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
  await commentMenu(page, comment, 'Delete');
  await comment.waitFor({ state: 'detached' });
  await page.getByText('Comment deleted').waitFor();
}

t.test('what two users do on one page', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const browser = await openBrowser(t);
  const context = await browser.newContext({ viewport });
  const ann = await openDemo(t, context, cluster, 'ann');
  const post = async (body: string, x: number, mentions: string[] = []): Promise<string> => {
    const answer = (await (
      await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ci-bot', body, position: { x, y: 0.3 }, mentions })
    ).json()) as { thread: { id: string } };
    await pin(ann, body).waitFor();
    return answer.thread.id;
  };
  const onServer = async (threadId: string): Promise<string[]> => {
    const { items } = (await (await api(cluster, 'GET', `/threads/${threadId}/comments`)).json()) as {
      items: { id: string }[];
    };
    return items.map(({ id }) => id);
  };

  await t.test('the other user is shown while they are there', async () => {
    const bob = await openDemo(t, await browser.newContext({ viewport }), cluster, 'bob');
    await ann.getByRole('img', { name: 'Online now: Bob' }).waitFor();
    await bob.close();
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
    await api(cluster, 'POST', '/rooms/demo/threads', {
      userId: 'ci-bot',
      body: 'Crowded two',
      position: { x: 0.801, y: 0.3 },
    });
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

  const focused = (): Promise<string> =>
    ann.evaluate<string>(
      "document.activeElement?.shadowRoot?.activeElement?.dataset.thread ?? document.activeElement?.shadowRoot?.activeElement?.dataset.cluster ?? ''",
    );

  await t.test('all pins are one stop of the Tab key; the arrow keys move among them', async (t) => {
    await ann.keyboard.press('Escape');
    await popover(ann).waitFor({ state: 'detached' });
    const pins = ann.locator('collab-comments .pin');
    t.ok((await pins.count()) > 2);
    t.equal(await ann.locator('collab-comments .pin[tabindex="0"]').count(), 1);
    await pins.and(ann.locator('[tabindex="0"]')).focus();
    await ann.keyboard.press('Home');
    const order = [await focused()];
    for (let step = 1; step < (await pins.count()); step += 1) {
      await ann.keyboard.press('ArrowDown');
      order.push(await focused());
    }
    t.equal(new Set(order).size, await pins.count(), 'each is reached');
    await ann.keyboard.press('ArrowRight');
    t.equal(await focused(), order[0], 'around the end');
    await until(
      async () => (await ann.locator('collab-comments .pin[tabindex="0"]').getAttribute('data-thread')) === order[0],
    );
    await ann.keyboard.press('Tab');
    t.equal(await focused(), '', 'Tab leaves them');
  });

  await t.test('shortcuts comment and go through the threads, unless the page has them', async (t) => {
    await ann.locator('h1').click();
    await ann.keyboard.press('n');
    t.equal(await popover(ann).count(), 0, 'off by default');
    await ann.evaluate("document.querySelector('collab-comments').setAttribute('shortcuts', '')");
    const seen: string[] = [];
    for (const key of ['n', 'n', 'p']) {
      await ann.keyboard.press(key);
      await popover(ann).waitFor();
      seen.push(
        await ann.evaluate<string>(
          "document.querySelector('collab-comments').shadowRoot.querySelector('.pin.open').dataset.thread",
        ),
      );
      await ann.keyboard.press('Escape');
      await popover(ann).waitFor({ state: 'detached' });
      await ann.locator('h1').click();
    }
    t.not(seen[0], seen[1]);
    t.equal(seen[0], seen[2]);
    await ann.keyboard.press('c');
    await ann.getByRole('application').waitFor();
    await ann.keyboard.press('Escape');
    await ann.getByRole('application').waitFor({ state: 'detached' });
    await ann.locator('h1').click();
    await ann.evaluate("document.querySelector('h1').setAttribute('aria-keyshortcuts', 'c')");
    await ann.keyboard.press('c');
    await ann.evaluate(
      "document.querySelector('h1').removeAttribute('aria-keyshortcuts'); addEventListener('keydown', (event) => event.preventDefault(), { capture: true, once: true })",
    );
    await ann.keyboard.press('c');
    t.equal(await ann.getByRole('application').count(), 0);
  });

  await t.test('all pins can be hidden, also after a reload', async (t) => {
    await ann.getByRole('button', { name: /Show comments/ }).click();
    await ann.getByRole('button', { name: 'Hide pins' }).click();
    await ann.locator('collab-comments .pin').first().waitFor({ state: 'detached' });
    await ann.reload();
    await ann.getByRole('button', { name: /Show comments/ }).click();
    await ann.locator('.panel .item').first().waitFor();
    t.equal(await ann.locator('collab-comments .pin').count(), 0);
    await ann.getByRole('button', { name: 'Show pins' }).click();
    await ann.locator('collab-comments .pin').first().waitFor();
    await ann.getByRole('complementary').getByRole('button', { name: 'Close' }).click();
  });

  await t.test('a pin is dragged to another place, and Undo brings it back', async (t) => {
    const moving = await post('To be moved', 0.35);
    const at = async (): Promise<{ x: number; y: number }> => {
      const box = await pin(ann, 'To be moved').boundingBox();
      // Its lower left corner, which stays where it is when the pointer enlarges it.
      return { x: Math.round(box?.x ?? 0), y: Math.round((box?.y ?? 0) + (box?.height ?? 0)) };
    };
    const stored = async (): Promise<unknown> =>
      ((await (await api(cluster, 'GET', `/threads/${moving}`)).json()) as { thread: { position: unknown } }).thread
        .position;
    const [from, before] = [await at(), await stored()];
    await ann.mouse.move(from.x + 16, from.y - 16);
    await ann.mouse.down();
    await ann.mouse.move(from.x + 60, from.y + 40, { steps: 4 });
    await ann.locator('collab-comments .pin.dragged').waitFor();
    await ann.keyboard.press('Escape');
    await ann.locator('collab-comments .pin.dragged').waitFor({ state: 'detached' });
    await ann.mouse.up();
    t.equal(await popover(ann).count(), 0, 'a drag that Escape has ended is no click');
    t.same(await stored(), before);
    await ann.mouse.move(from.x + 16, from.y - 16);
    await ann.mouse.down();
    await ann.mouse.move(from.x + 60, from.y + 40, { steps: 4 });
    await ann.mouse.move(from.x + 116, from.y + 104, { steps: 4 });
    await ann.mouse.up();
    await ann.locator('.toast', { hasText: 'Thread pinned' }).waitFor();
    const to = await at();
    t.ok(
      Math.abs(to.x - from.x - 100) <= 2 && Math.abs(to.y - from.y - 120) <= 2,
      `moved from ${from.x}, ${from.y} to ${to.x}, ${to.y}`,
    );
    t.equal(await popover(ann).count(), 0, 'the end of the drag is no click');
    t.notSame(await stored(), before);
    await ann.getByRole('button', { name: 'Undo' }).click();
    await until(async () => JSON.stringify(await stored()) === JSON.stringify(before));
  });
});
