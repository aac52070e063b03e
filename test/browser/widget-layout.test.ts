import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { startCluster, until } from '../helpers/cluster.ts';
import { api, field, openDemo, popover } from '../helpers/widget-page.ts';

/** Opens a thread of the demo page with a comment of each text, as ann. */
async function openThread(t: Parameters<typeof openBrowser>[0], bodies: readonly string[]): Promise<Page> {
  const cluster = await startCluster({ workers: 1, config: { rateLimit: { perMinute: 1_000_000 }, demo: true, shutdown: { closeSpreadSeconds: 0 } } });
  t.teardown(() => cluster.stop());
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1200, height: 900 } });
  const page = await openDemo(t, context, cluster, 'ann');
  const [body, ...replies] = bodies;
  const { thread } = (await (await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ann', body, position: { x: 0.95, y: 0.1 } })).json()) as { thread: { id: string } };
  for (const reply of replies) await api(cluster, 'POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: reply });
  await page.evaluate(`document.querySelector('collab-comments').openThread('${thread.id}')`);
  await popover(page).getByText(bodies.at(-1) ?? '').waitFor();
  return page;
}

t.test('the layout of the widget in a browser', { skip: skipReason, timeout: 120_000 }, async (t) => {
  const page = await openThread(t, ['The first', 'The second']);
  /** Waits until an expression is true in the page, whose policy forbids the `eval` of `waitForFunction`. */
  const holds = (expression: string): Promise<void> => until(() => page.evaluate<boolean>(expression));

  await t.test('the field fits its text again when the window gets narrower and the lines break elsewhere', async () => {
    await field(page).fill('These words fill some lines of the field. '.repeat(3));
    const missing = `(() => {
      const { scrollHeight, clientHeight } = document.querySelector('collab-comments').shadowRoot.querySelector('.composer textarea');
      return scrollHeight - clientHeight;
    })()`;
    t.equal(await page.evaluate(missing), 0);
    await page.setViewportSize({ width: 320, height: 700 });
    await holds(`${missing} === 0 && innerWidth === 320`);
    await page.setViewportSize({ width: 1200, height: 900 });
    await field(page).fill('');
  });

  await t.test('the thread moves beside the panel once that has slid in', async () => {
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(true)`);
    await holds(`(() => {
      const root = document.querySelector('collab-comments').shadowRoot;
      const [thread, panel] = ['.popover', '.panel'].map((name) => root.querySelector(name)?.getBoundingClientRect());
      return panel !== undefined && panel.right === innerWidth - 12 && thread.right <= panel.left;
    })()`);
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(false)`);
  });

  await t.test('the buttons of a comment are seen while the pointer or the focus is in it, or a menu of it is open', async (t) => {
    const second = popover(page).locator('.comment').nth(1);
    const seen = (is: boolean): Promise<void> =>
      holds(`(() => {
        const comment = document.querySelector('collab-comments').shadowRoot.querySelectorAll('.popover .comment')[1];
        const { color } = getComputedStyle(comment.querySelector('[data-menu=more]'));
        return (color !== 'rgba(0, 0, 0, 0)') === ${is};
      })()`);
    await page.mouse.move(5, 5);
    await field(page).focus();
    await seen(false);
    await second.hover();
    await seen(true);
    await page.mouse.move(5, 5);
    await seen(false);
    await page.keyboard.press('Shift+Tab');
    t.equal(await page.evaluate(`document.querySelector('collab-comments').shadowRoot.activeElement?.dataset.menu`), 'more', 'the keyboard reaches them');
    await seen(true);
    await page.keyboard.press('Enter');
    await second.getByRole('menu').waitFor();
    await seen(true);
    await page.keyboard.press('Escape');
    await field(page).focus();
    await seen(false);
  });
});
