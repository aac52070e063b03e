import { randomUUID } from 'node:crypto';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { serveHtml, servePage } from '../helpers/own-page.ts';
import { api, commentMenu, field, openDemo, openPage, popover } from '../helpers/widget-page.ts';

const root = "document.querySelector('collab-comments').shadowRoot";
const longName = 'Maximiliane Schmidt-Oberhäuser von und zu Hohenstein';

t.test('an open thread and the list of threads', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const browser = await openBrowser(t);
  const page = await openDemo(t, await browser.newContext({ viewport: { width: 1200, height: 900 } }), cluster, 'ann');
  await api(cluster, 'PUT', '/users/max', { name: longName });
  /** Waits until an expression is true in the page, whose policy forbids the `eval` of `waitForFunction`. */
  const holds = (expression: string): Promise<void> => until(() => page.evaluate<boolean>(expression));
  const createThread = async (body: string): Promise<string> => {
    const answer = await api(cluster, 'POST', '/rooms/demo/threads', {
      userId: 'max',
      body,
      position: { x: 0.7, y: 0.1 },
    });
    return ((await answer.json()) as { thread: { id: string } }).thread.id;
  };
  const threadId = await createThread('Number 0');
  const reply = (body: string): Promise<Response> =>
    api(cluster, 'POST', `/threads/${threadId}/comments`, { userId: 'bob', body });
  for (let number = 1; number < 26; number += 1) await reply(`Number ${number}`);
  const list = `${root}.querySelector('.comments')`;
  const open = async (): Promise<void> => {
    await page.evaluate(`document.querySelector('collab-comments').openThread('${threadId}')`);
    await popover(page).getByText('Number 25').waitFor();
    await holds(`${root}.activeElement?.localName === 'textarea'`);
  };
  /** Waits until the end of the last comment, which contains a text, is in sight. */
  const endsWith = (text: string): Promise<void> =>
    holds(`(() => {
      const last = [...${list}.querySelectorAll('.comment')].at(-1);
      return last.innerText.includes(${JSON.stringify(text)}) && last.getBoundingClientRect().bottom <= ${list}.getBoundingClientRect().bottom + 1;
    })()`);

  await t.test('a reader at the end of a long thread stays there, whatever grows', async (t) => {
    await open();
    await t.resolves(endsWith('Number 25'), 'opened');
    await field(page).fill('My own reply');
    await field(page).press('Enter');
    await t.resolves(endsWith('My own reply'), 'with the own reply');
    // Until then the reply of another could get to the server first.
    await popover(page).locator('.comment.pending').waitFor({ state: 'detached' });
    await reply('A reply of another');
    await t.resolves(endsWith('A reply of another'), 'with a reply of another');
    await field(page).fill('One line\n'.repeat(8));
    await t.resolves(endsWith('A reply of another'), 'with a higher field');
    await field(page).press('x');
    await t.resolves(endsWith('A reply of another'), 'with a field that is measured again');
    await field(page).fill('');
    for (const which of [3, -1]) {
      await page.evaluate(`[...${list}.querySelectorAll('.body')].at(${which}).style.height = '300px'`);
      await t.resolves(endsWith('A reply of another'), 'with a comment whose media are loaded later');
    }
    await page.keyboard.press('Escape');
    await open();
    await t.resolves(endsWith('A reply of another'), 'opened again');
  });

  await t.test('a reader who scrolled up is moved by the own reply alone', async (t) => {
    await page.evaluate(`${list}.scrollTop = -20`);
    await reply('Shortly before the end');
    await t.resolves(endsWith('Shortly before the end'));
    const place = `${list}.querySelectorAll('.comment')[12].getBoundingClientRect().top - ${list}.getBoundingClientRect().top`;
    const stays = async (text: string): Promise<void> => {
      await page.evaluate(`${list}.querySelectorAll('.comment')[12].scrollIntoView()`);
      await reply(text);
      await holds(`${list}.innerText.includes('${text}')`);
      await t.resolves(holds(`Math.abs(${place}) < 2`), text);
    };
    await stays('While someone reads');
    await page.evaluate(`(() => { CSS.supports = () => false; ${list}.style.overflowAnchor = 'none'; })()`);
    await stays('In a browser without scroll anchoring');
    await page.evaluate(`${list}.scrollTop = -20`);
    await reply('While the end is nearly in sight');
    await t.resolves(endsWith('While the end is nearly in sight'));
    await page.evaluate(`${list}.scrollTop = -400`);
    await field(page).fill('Read it');
    await field(page).press('Enter');
    await t.resolves(endsWith('Read it'));
    await popover(page).locator('.comment.pending').waitFor({ state: 'detached' });
  });

  await t.test('a comment that the server has not confirmed says so in a word that can be read', async (t) => {
    const workers = cluster.pids('web');
    for (const pid of workers) process.kill(pid, 'SIGSTOP');
    try {
      await field(page).fill('On its way');
      await field(page).press('Enter');
      await popover(page).locator('.comment.pending', { hasText: 'On its way' }).getByText('Sending…').waitFor();
      t.equal(await page.evaluate(`getComputedStyle(${root}.querySelector('.comment.pending')).opacity`), '1');
    } finally {
      for (const pid of workers) process.kill(pid, 'SIGCONT');
    }
    await popover(page).getByText('Sending…').waitFor({ state: 'detached' });
  });

  await t.test('Home and End lead to the ends of the menu of a comment, and the arrows around them', async (t) => {
    const own = popover(page).locator('.comment', { hasText: 'On its way' });
    await commentMenu(page, own);
    await own.getByRole('menu').waitFor();
    for (const [key, name] of [
      ['ArrowDown', 'Edit'],
      ['End', 'Delete'],
      ['Home', 'Copy link'],
      ['ArrowUp', 'Delete'],
      ['ArrowDown', 'Copy link'],
    ] as const) {
      await page.keyboard.press(key);
      t.equal(await page.evaluate(`${root}.activeElement.innerText`), name, key);
    }
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
  });

  await t.test('a long name in the list ends with an ellipsis, and what is beside it is seen', async (t) => {
    const item = `${root}.querySelector('.panel [data-thread="${await createThread('From someone with a long name')}"]')`;
    await page.setViewportSize({ width: 375, height: 700 });
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(true)`);
    await holds(`(${item}?.querySelector('.dot') ?? null) !== null`);
    for (const direction of ['ltr', 'rtl']) {
      await page.evaluate(`document.documentElement.dir = '${direction}'`);
      const outside = await page.evaluate(`(() => {
        const { left, right } = ${item}.getBoundingClientRect();
        return [...${item}.querySelectorAll('.item-head, .name, time, .dot, .item-body')].filter((part) => {
          const box = part.getBoundingClientRect();
          return box.left < left || box.right > right || box.width === 0;
        }).map(({ className, localName }) => localName + '.' + className);
      })()`);
      t.strictSame(outside, [], direction);
      t.ok(
        await page.evaluate(
          `(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(${item}.querySelector('.name'))`,
        ),
        'the name is cut',
      );
    }
  });

  await t.test('a thread of invisible characters is not listed as a file', async (t) => {
    // The server takes the marks of annotations for text, and the widget shows nothing of them.
    const id = await createThread('\uFFF9\uFFFB');
    t.equal(await page.locator(`collab-comments .panel [data-thread="${id}"] .item-body`).textContent(), '…');
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(false)`);
  });

  await t.test('in a frame that may not submit forms comments are sent, by key and by button', async (t) => {
    const inner = await servePage(t, cluster, '<h1>Inner</h1>');
    const outer = await serveHtml(
      t,
      `<!doctype html><title>Outer</title><iframe sandbox="allow-scripts" src="${inner}" width="900" height="700"></iframe>`,
    );
    const framed = await openPage(t, await browser.newContext({ viewport: { width: 1000, height: 800 } }), outer);
    const frame = framed.frameLocator('iframe');
    await frame.getByRole('button', { name: 'Add a comment' }).click();
    await frame.getByRole('application').click({ position: { x: 200, y: 200 } });
    await frame.getByLabel('Add a comment…').fill('By key');
    await frame.getByLabel('Add a comment…').press('Enter');
    await frame.locator('.comment:not(.pending)', { hasText: 'By key' }).waitFor();
    await frame.getByLabel('Reply…').fill('By button');
    await frame.getByRole('button', { name: 'Reply' }).click();
    await t.resolves(frame.locator('.comment:not(.pending)', { hasText: 'By button' }).waitFor());
  });

  await t.test('a thread that the page opens before it has arrived is open once it has', async (t) => {
    const create = (id: string, body: string): Promise<Response> =>
      api(cluster, 'POST', '/rooms/demo/threads', { id, userId: 'max', body, position: { x: 0.3, y: 0.3 } });
    const ask = (id: string): Promise<unknown> =>
      page.evaluate(`document.querySelector('collab-comments').openThread('${id}')`);
    const [first, second] = [`th_${randomUUID()}`, `th_${randomUUID()}`];
    await ask(first);
    await create(first, 'Just created');
    await popover(page).getByText('Just created').waitFor();
    await ask(second);
    await page.keyboard.press('Escape');
    await create(second, 'Not wanted any more');
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(true)`);
    await page.locator(`collab-comments .panel [data-thread="${second}"]`).waitFor();
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(false)`);
    t.equal(await popover(page).count(), 0, 'the user has closed the thread meanwhile');
  });

  await t.test('a thread that the page opens before the room is loaded is open once it is', async (t) => {
    const context = await browser.ownContext();
    await context.addInitScript(`new MutationObserver((_, observer) => {
      const widget = document.querySelector('collab-comments');
      if (widget === null) return;
      observer.disconnect();
      customElements.whenDefined('collab-comments').then(() => widget.updateComplete).then(() => widget.openThread('${threadId}'));
    }).observe(document, { childList: true, subtree: true })`);
    const early = await openPage(t, context, `${cluster.url}/demo/page?user=bob`);
    await t.resolves(popover(early).getByText('Number 25').waitFor());
  });
});
