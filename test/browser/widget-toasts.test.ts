import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { api, openDemo, pin, popover } from '../helpers/widget-page.ts';

const REFUSED = 'notes.txt cannot be attached.';
const DROP_HINT = 'Drop files on an open thread or a new comment.';

/**
 * What is wrong with the places of the messages, at last; empty once each is within the window and beside all of
 * `kept`.
 */
async function complaints(page: Page, kept: readonly string[]): Promise<readonly string[]> {
  let found: readonly string[] = [];
  const read = `(() => {
    const root = document.querySelector('collab-comments').shadowRoot;
    const toasts = [...root.querySelectorAll('.toast')].map((toast) => toast.getBoundingClientRect());
    const wrong = toasts.length === 0 ? ['no message'] : [];
    for (const { left, top, right, bottom } of toasts) {
      if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight) wrong.push('outside: ' + [left, top, right, bottom].map(Math.round));
    }
    for (const selector of ${JSON.stringify(kept)}) {
      const element = root.querySelector(selector);
      const box = element?.getBoundingClientRect();
      if (box === undefined) wrong.push('no ' + selector);
      else if (toasts.some(({ left, top, right, bottom }) => left < box.right && right > box.left && top < box.bottom && bottom > box.top)) wrong.push('covers ' + selector);
      else if (!element.contains(root.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)) && !element.matches('.hint')) wrong.push('not reached: ' + selector);
    }
    return wrong;
  })()`;
  await until(async () => (found = await page.evaluate<string[]>(read)).length === 0, 30_000).catch(() => undefined);
  return found;
}

/** Refuses a file that is attached to the open field. */
async function refuseFile(page: Page): Promise<void> {
  await popover(page)
    .locator('input[type=file]')
    .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') });
  await page.getByText(REFUSED).waitFor();
}

/** Drops a file where there is no field for it. */
async function dropOnPanel(page: Page): Promise<void> {
  await page.evaluate(`(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['x'], 'notes.txt'));
    document.querySelector('collab-comments').shadowRoot.querySelector('.panel .list').dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true, composed: true }));
  })()`);
  await page.getByText(DROP_HINT).waitFor();
}

t.test('messages cover nothing that is needed and stay within the window', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1200, height: 800 } });
  const { thread } = (await (
    await api(cluster, 'POST', '/rooms/demo/threads', {
      userId: 'ann',
      body: 'In the corner',
      position: { x: 0.97, y: 0.5 },
    })
  ).json()) as { thread: { id: string } };
  for (let reply = 1; reply <= 9; reply++)
    await api(cluster, 'POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: `Reply ${reply}` });
  const page = await openDemo(t, context, cluster, 'ann', /status of 4\d\d/);
  const widget = "document.querySelector('collab-comments')";
  const panel = (open: boolean): Promise<void> => page.evaluate(`${widget}.togglePanel(${open})`);
  const openThread = async (): Promise<void> => {
    await page.evaluate(`${widget}.openThread('${thread.id}')`);
    await popover(page).getByText('In the corner').waitFor();
  };
  const dismissAll = async (): Promise<void> => {
    const buttons = page.getByRole('button', { name: 'Dismiss' });
    await until(async () => {
      if ((await buttons.count()) === 0) return true;
      // One that has its time goes by itself meanwhile.
      await buttons
        .first()
        .click({ timeout: 1_000 })
        .catch(() => {});
      return false;
    });
  };
  const ofThread = ['.popover [aria-label="Close"]', '.popover .send'];

  for (const [width, height] of [
    [1200, 800],
    [1100, 750],
    [660, 800],
    [375, 667],
    [320, 568],
  ] as const) {
    await t.test(`an open thread in a window of ${width} × ${height}`, async (t) => {
      await page.setViewportSize({ width, height });
      await openThread();
      await refuseFile(page);
      t.same(await complaints(page, ofThread), []);
      await panel(true);
      t.same(await complaints(page, ofThread), [], 'with the panel');
      await panel(false);
      await dismissAll();
      await popover(page).getByRole('button', { name: 'Close' }).click();
    });
  }

  for (const width of [1200, 811, 780, 720, 660, 601, 375, 320]) {
    await t.test(`the panel in a window ${width} wide`, async (t) => {
      await page.setViewportSize({ width, height: 667 });
      await panel(true);
      await dropOnPanel(page);
      t.same(await complaints(page, ['.panel-header [aria-label="Close"]', '.panel input']), []);
      await dismissAll();
      await panel(false);
    });
  }

  for (const placement of ['bottom-right', 'top-left']) {
    await t.test(`a place is chosen on a phone, with the toolbar ${placement}`, async (t) => {
      await page.setViewportSize({ width: 375, height: 667 });
      await page.evaluate(`${widget}.placement = '${placement}'`);
      await openThread();
      await refuseFile(page);
      await page.evaluate(`${widget}.startComment()`);
      t.same(await complaints(page, ['.hint', '.hint button']), []);
      await page.locator('collab-comments .hint').getByRole('button', { name: 'Cancel' }).click();
      t.same(await complaints(page, ['.toolbar']), []);
      await dismissAll();
    });
  }

  /** Whether a click in the middle of the first element that matches would reach it. */
  const isReached = (selector: string): Promise<boolean> =>
    page.evaluate(`(() => {
      const root = document.querySelector('collab-comments').shadowRoot;
      const element = root.querySelector(${JSON.stringify(selector)});
      const { left, top, width, height } = element.getBoundingClientRect();
      return element.contains(root.elementFromPoint(left + width / 2, top + height / 2));
    })()`);

  await t.test('three messages in a low window leave the hint free, with the newest in sight', async (t) => {
    await page.setViewportSize({ width: 844, height: 390 });
    await openThread();
    for (const name of ['one', 'two', 'three']) {
      await popover(page)
        .locator('input[type=file]')
        .setInputFiles({ name: `${name}.txt`, mimeType: 'text/plain', buffer: Buffer.from('x') });
      await page.getByText(`${name}.txt cannot be attached.`).waitFor();
    }
    t.ok(await isReached('.toast button'), 'in the thread');
    t.match(await page.locator('collab-comments .toast').first().textContent(), /three\.txt/);
    await page.evaluate(`${widget}.startComment()`);
    t.ok(await isReached('.hint button'));
    t.ok(await isReached('.toast button'), 'while a place is chosen');
    const [above, beside, below] = await page.evaluate<[number, number, number]>(`(() => {
      const toasts = ${widget}.shadowRoot.querySelector('.root > .toasts');
      const first = toasts.querySelector('.toast');
      const last = [...toasts.querySelectorAll('.toast')].at(-1);
      return [first.offsetTop, first.offsetLeft, toasts.scrollHeight - last.offsetTop - last.offsetHeight];
    })()`);
    t.ok(above >= 20 && beside >= 32 && below >= 44, `its shadow has room: ${above}, ${beside}, ${below}`);
    await page.locator('collab-comments .hint button').focus();
    await page.keyboard.press('Escape');
    await page.locator('collab-comments .hint').waitFor({ state: 'detached' });
    await dismissAll();
  });

  await t.test('who dismisses a message by keyboard goes on in the field of the thread', async (t) => {
    await page.setViewportSize({ width: 1200, height: 800 });
    await openThread();
    await refuseFile(page);
    await page.getByRole('button', { name: 'Dismiss' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('collab-comments .toast').waitFor({ state: 'detached' });
    t.equal(await page.evaluate(`${widget}.shadowRoot.activeElement?.localName`), 'textarea');
    await popover(page).getByRole('button', { name: 'Close' }).click();
  });

  await t.test('a new thread in a narrow window', async (t) => {
    await page.setViewportSize({ width: 320, height: 568 });
    await page.evaluate(`${widget}.startComment()`);
    await page.getByRole('application').click({ position: { x: 100, y: 200 } });
    await refuseFile(page);
    t.same(await complaints(page, ['.popover textarea', '.popover .quiet-button', '.popover .send']), []);
    await dismissAll();
    await popover(page).getByRole('button', { name: 'Cancel' }).click();
  });

  await t.test(
    'a thread that is opened from the panel on a phone hides the panel, and its closing shows it again',
    async () => {
      await page.evaluate(`${widget}.placement = 'bottom-right'`);
      await panel(true);
      await page.locator('collab-comments .panel .item', { hasText: 'In the corner' }).click();
      await popover(page).waitFor();
      await page.locator('collab-comments .panel').waitFor({ state: 'hidden' });
      await popover(page).getByRole('button', { name: 'Close' }).click();
      await page.locator('collab-comments .panel').waitFor();
      await pin(page, 'In the corner').waitFor({ state: 'attached' });
    },
  );
});
