import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { startCluster, until } from '../helpers/cluster.ts';
import { servePage } from '../helpers/own-page.ts';
import { api, live, openPage, popover } from '../helpers/widget-page.ts';

t.test('the styles of the widget', { skip: skipReason, timeout: 120_000 }, async (t) => {
  const cluster = await startCluster({ workers: 1, config: { rateLimit: { perMinute: 1_000_000 }, demo: true, shutdown: { closeSpreadSeconds: 0 } } });
  t.teardown(() => cluster.stop());
  const browser = await openBrowser(t);
  for (const [userId, name] of [['ann', 'Ann'], ['bob', 'Bob']]) await api(cluster, 'PUT', `/users/${userId}`, { name });
  const { thread } = (await (await api(cluster, 'POST', '/rooms/own/threads', { userId: 'ann', body: 'The first', position: { x: 0.5, y: 0.1 } })).json()) as { thread: { id: string } };
  for (const [userId, body] of [['bob', 'The second'], ['ann', 'The third']]) await api(cluster, 'POST', `/threads/${thread.id}/comments`, { userId, body });

  /** A page with the thread and the panel open. */
  async function open(body: string, attributes = '', colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme, reducedMotion: 'reduce' });
    const page = await openPage(t, context, await servePage(t, cluster, body, attributes));
    await live(page);
    await page.locator('collab-comments .pin').first().waitFor();
    await page.evaluate(`(() => { const widget = document.querySelector('collab-comments'); widget.openThread('${thread.id}'); widget.togglePanel(true); })()`);
    await popover(page).getByText('The third').waitFor();
    await page.locator('collab-comments .panel').waitFor();
    return page;
  }

  /** A computed property of the first element of the widget that the selector finds. */
  const computed = (page: Page, selector: string, property: string): Promise<string> =>
    page.evaluate(`getComputedStyle(document.querySelector('collab-comments').shadowRoot.querySelector('${selector}')).getPropertyValue('${property}')`);

  await t.test('rules of the page for every element do not reach into it', async (t) => {
    const hostile = '* { letter-spacing: 5px; text-transform: uppercase; word-spacing: 9px; text-indent: 20px; white-space: pre; line-height: 3; font-style: italic; color: red; cursor: wait; direction: ltr }';
    const [plain, styled] = [await open('<h1>Page</h1>', 'dir="rtl"', 'dark'), await open(`<style>${hostile}</style><h1>Page</h1>`, 'dir="rtl"', 'dark')];
    for (const selector of ['.popover h2', '.popover .body p', '.panel .item-body', 'textarea', 'time']) {
      for (const property of ['letter-spacing', 'text-transform', 'word-spacing', 'text-indent', 'white-space', 'line-height', 'font-style', 'color', 'cursor', 'direction', 'color-scheme', 'font-family', 'font-size']) {
        t.equal(await computed(styled, selector, property), await computed(plain, selector, property), `${property} of ${selector}`);
      }
    }
    t.equal(await computed(plain, '.popover h2', 'color'), 'rgb(241, 241, 244)', 'dark');
  });

  await t.test('the theme, the direction and the custom properties of the page do', async (t) => {
    const page = await open('<style>collab-comments { --collab-text: rgb(1, 2, 3); --collab-font-size: 20px; --collab-font: monospace }</style><h1>Page</h1>', 'dir="rtl"');
    t.equal(await computed(page, '.popover h2', 'color'), 'rgb(1, 2, 3)');
    t.equal(await computed(page, '.popover h2', 'font'), '600 20px / 29px monospace');
    t.equal(await computed(page, '.popover h2', 'direction'), 'rtl');
    t.equal(await computed(page, '.popover', 'background-color'), 'rgb(255, 255, 255)');
    await page.evaluate(`document.querySelector('collab-comments').theme = 'dark'`);
    await until(async () => (await computed(page, '.popover', 'background-color')) === 'rgb(30, 31, 37)');
  });

  await t.test('the radius is that of panel, field, items and buttons too', async (t) => {
    const radii = async (page: Page): Promise<string[]> => Promise.all(['.panel', '.popover', '.composer', '.item', '.search', '.actions', '.icon-button'].map((selector) => computed(page, selector, 'border-radius')));
    t.same(await radii(await open('<h1>Page</h1>')), ['16px', '12px', '10px', '10px', '10px', '10px', '8px']);
    t.same(await radii(await open('<style>collab-comments { --collab-radius: 6px }</style>')), ['8px', '6px', '5px', '5px', '5px', '5px', '4px']);
    for (const zero of ['0', '0px']) t.same(new Set(await radii(await open(`<style>collab-comments { --collab-radius: ${zero} }</style>`))), new Set(['0px']), zero);
  });

  await t.test('German texts are in order on a page from right to left, and stay on its side', async (t) => {
    const page = await open('<h1>Page</h1>', 'dir="rtl"');
    await page.evaluate(`document.querySelector('collab-comments').setAttribute('locale', 'de')`);
    await page.getByText('2 Antworten').waitFor();
    // The characters of a line that are left of the one before them.
    const misplaced = await page.evaluate<string[]>(`[...document.querySelector('collab-comments').shadowRoot.querySelectorAll('time, .quiet')].flatMap((element) => {
      const texts = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');
      return texts.flatMap((text) => {
        const range = document.createRange();
        const lefts = [...text.data].map((_, index) => { range.setStart(text, index); range.setEnd(text, index + 1); return range.getBoundingClientRect(); }).filter(({ width }) => width > 0);
        return lefts.some(({ left, top }, index) => index > 0 && top === lefts[index - 1].top && left < lefts[index - 1].left) ? [text.data] : [];
      });
    })`);
    t.same(misplaced, []);
    const [replies, head] = await page.evaluate<[number, number]>(`['.replies', '.item-text'].map((selector) => document.querySelector('collab-comments').shadowRoot.querySelector(selector).getBoundingClientRect().right)`);
    t.equal(replies, head);
  });
});
