import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { api, field, openDemo, popover } from '../helpers/widget-page.ts';

/** Opens a thread of the demo page with a comment of each text, as ann. */
async function openThread(
  t: Parameters<typeof openBrowser>[0],
  cluster: Cluster,
  bodies: readonly string[],
): Promise<Page> {
  const context = await (
    await openBrowser(t)
  ).newContext({ viewport: { width: 1200, height: 900 }, reducedMotion: 'no-preference' });
  const page = await openDemo(t, context, cluster, 'ann');
  const [body, ...replies] = bodies;
  const { thread } = (await (
    await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ann', body, position: { x: 0.95, y: 0.1 } })
  ).json()) as { thread: { id: string } };
  for (const reply of replies)
    await api(cluster, 'POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: reply });
  await page.evaluate(`document.querySelector('collab-comments').openThread('${thread.id}')`);
  await popover(page)
    .getByText(bodies.at(-1) ?? '')
    .waitFor();
  return page;
}

t.test('the layout of the widget in a browser', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const page = await openThread(t, cluster, ['The first', 'The second']);
  /** Waits until an expression is true in the page, whose policy forbids the `eval` of `waitForFunction`. */
  const holds = (expression: string): Promise<void> => until(() => page.evaluate<boolean>(expression));

  await t.test(
    'the field fits its text again when the window gets narrower and the lines break elsewhere',
    async () => {
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
    },
  );

  await t.test('the thread moves beside the panel once that has slid in', async () => {
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(true)`);
    await holds(`(() => {
      const root = document.querySelector('collab-comments').shadowRoot;
      const [thread, panel] = ['.popover', '.panel'].map((name) => root.querySelector(name)?.getBoundingClientRect());
      return panel !== undefined && panel.right === innerWidth - 12 && thread.right <= panel.left;
    })()`);
    await page.evaluate(`document.querySelector('collab-comments').togglePanel(false)`);
  });

  await t.test(
    'the buttons of a comment are seen while the pointer or the focus is in it, or a menu of it is open',
    async (t) => {
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
      t.equal(
        await page.evaluate(`document.querySelector('collab-comments').shadowRoot.activeElement?.dataset.menu`),
        'more',
        'the keyboard reaches them',
      );
      await seen(true);
      await page.keyboard.press('Enter');
      await second.getByRole('menu').waitFor();
      await seen(true);
      await page.keyboard.press('Escape');
      await field(page).focus();
      await seen(false);
    },
  );

  const root = "document.querySelector('collab-comments').shadowRoot";

  await t.test(
    'a list shows plain text, bots as such, whole names to the pointer, and what is on another page',
    async (t) => {
      await page.evaluate("document.querySelector('collab-comments').togglePanel(true)");
      const name = 'A release bot with a name that is longer than the line it has';
      await api(cluster, 'PUT', '/users/bot', { name, kind: 'bot' });
      const fingerprint = {
        v: 1,
        tag: 'p',
        shape: '',
        attributes: {},
        classes: [],
        surroundings: 'near',
        levels: -1,
        labels: [],
        headings: [],
        key: null,
        host: '',
        inner: [],
        count: 1,
        same: 1,
        nth: 0,
      };
      const create = (body: string, page: string): Promise<unknown> =>
        api(cluster, 'POST', '/rooms/demo/threads', {
          userId: 'bot',
          body,
          position: {
            x: 0.5,
            y: 0.5,
            quote: 'Nothing here has this text',
            fingerprint: JSON.stringify({ ...fingerprint, page }),
          },
        });
      await create('> A quote\n\n- **bold** and [a link](https://example.com)\n- `code`', '/demo/page');
      await create('Pinned elsewhere', '/other/page');
      const gone = page.locator('collab-comments [part=detached] .item');
      t.equal(await gone.locator('.item-body').textContent(), 'A quote bold and a link code');
      t.equal(await gone.locator('.tag').textContent(), 'Bot');
      t.equal(await gone.locator('.name').getAttribute('title'), name);
      const elsewhere = page.locator('collab-comments [part=elsewhere] .item');
      t.equal(await elsewhere.locator('.item-body').textContent(), 'Pinned elsewhere');
      t.match(
        await elsewhere.getByRole('link', { name: 'Go to page' }).getAttribute('href'),
        /^http:.*\/other\/page#collab=th_/,
      );
    },
  );

  await t.test('on a page from right to left, texts from left to right begin beside their avatar', async (t) => {
    await page.evaluate(
      "document.documentElement.dir = 'rtl'; document.querySelector('collab-comments').requestUpdate()",
    );
    await page.locator('collab-comments .root[dir=rtl]').waitFor({ state: 'attached' });
    const gaps =
      await page.evaluate(`[['.popover .body p', '.popover .comment-main'], ['.panel .item-body', '.panel .item-text']].map(([text, around]) =>
      Math.round(${root}.querySelector(around).getBoundingClientRect().right - ${root}.querySelector(text).getBoundingClientRect().right))`);
    t.same(gaps, [0, 0]);
    await page.evaluate(
      "document.documentElement.dir = 'ltr'; document.querySelector('collab-comments').togglePanel(false)",
    );
  });

  await t.test('a wheel over the head of the panel scrolls its list, and never the page behind it', async (t) => {
    for (let n = 0; n < 16; n += 1)
      await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'ann', body: `Thread ${n}` });
    await page.evaluate(
      "document.body.style.minBlockSize = '4000px'; document.querySelector('collab-comments').togglePanel(true)",
    );
    await page.locator('collab-comments .panel .item').nth(15).waitFor({ state: 'attached' });
    await page.locator('collab-comments .panel-header h2').hover();
    const tops = (): Promise<number[]> => page.evaluate(`[${root}.querySelector('.panel .list').scrollTop, scrollY]`);
    await page.mouse.wheel(0, 120);
    await until(async () => (await tops())[0] === 120);
    await page.mouse.wheel(0, 10_000);
    await page.mouse.wheel(0, 300);
    await until(async () => ((await tops())[0] ?? 0) > 300);
    t.equal((await tops())[1], 0);
    await page.evaluate("document.querySelector('collab-comments').togglePanel(false)");
    await page.mouse.move(300, 500);
    await page.mouse.wheel(0, 120);
    await until(
      async () => ((await tops().catch(() => [0, 0]))[1] ?? 0) > 0 || (await page.evaluate<number>('scrollY')) > 0,
    );
    await page.evaluate("scrollTo(0, 0); document.body.style.minBlockSize = ''");
  });

  await t.test('in a low window, such as one at 200 %, the thread is a sheet', async () => {
    await page.setViewportSize({ width: 640, height: 360 });
    await holds(
      `(() => { const { left, right, bottom } = ${root}.querySelector('.popover').getBoundingClientRect(); return left === 0 && right === innerWidth && bottom === innerHeight; })()`,
    );
  });

  await t.test('a long thread on the page itself that is opened on a phone is scrolled above its sheet', async () => {
    await page.setViewportSize({ width: 390, height: 500 });
    await page.evaluate("document.body.style.minBlockSize = '3000px'");
    const { thread } = (await (
      await api(cluster, 'POST', '/rooms/demo/threads', {
        userId: 'ann',
        body: `Far down the page ${'and on '.repeat(400)}`,
        position: { x: 0.5, y: 0.6 },
      })
    ).json()) as { thread: { id: string } };
    const element = "document.querySelector('collab-comments')";
    await page.locator('collab-comments .pin[aria-label*="Far down"]').waitFor({ state: 'attached' });
    await page.evaluate(`${element}.openThread('${thread.id}')`);
    await popover(page).getByText('Far down the page').waitFor();
    await holds(`(() => {
      const [pin, sheet] = ['.pin[aria-label*="Far down"]', '.popover'].map((name) => ${root}.querySelector(name).getBoundingClientRect());
      return pin.top >= 0 && pin.bottom <= sheet.top + 4;
    })()`);
    await page.evaluate("scrollTo(0, 0); document.body.style.minBlockSize = ''");
  });

  await t.test('the button to send stays in sight with many files and a long text, on a small phone too', async (t) => {
    const picture = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC',
      'base64',
    );
    /** Why the button at the end of a field cannot be clicked; empty if it can. */
    const hidden = (name: string): Promise<string> =>
      page.evaluate<string>(`(() => {
        const root = document.querySelector('collab-comments').shadowRoot;
        const button = root.querySelector('${name} [part=submit]');
        const { left, top, right, bottom } = button.getBoundingClientRect();
        const box = root.querySelector('.popover').getBoundingClientRect();
        if (bottom > Math.min(box.bottom, innerHeight) || top < box.top) return 'at ' + top + ' to ' + bottom + ' of ' + box.top + ' to ' + box.bottom;
        return button.contains(root.elementFromPoint((left + right) / 2, (top + bottom) / 2)) ? '' : 'covered';
      })()`);
    const fill = async (name: string): Promise<void> => {
      const composer = page.locator(`collab-comments ${name}`);
      await composer
        .locator('input[type=file]')
        .setInputFiles(
          Array.from({ length: 6 }, (_, number) => ({ name: `${number}.png`, mimeType: 'image/png', buffer: picture })),
        );
      await composer.locator('.upload').nth(5).waitFor();
      await composer.locator('progress').first().waitFor({ state: 'detached' });
      await composer.locator('textarea').fill('A long line of the text.\n'.repeat(30));
    };
    const sizes = [
      { width: 1200, height: 900 },
      { width: 390, height: 500 },
      { width: 320, height: 420 },
    ];
    const check = async (name: string): Promise<void> => {
      for (const size of sizes) {
        await page.setViewportSize(size);
        await holds(`innerWidth === ${size.width} && innerHeight === ${size.height}`);
        let problem = 'not measured';
        await until(async () => (problem = await hidden(name)) === '').catch(() => undefined);
        t.equal(problem, '', `${name} in ${size.width} × ${size.height}`);
      }
      await page.setViewportSize({ width: 1200, height: 900 });
    };
    await fill('.popover > collab-comments-composer');
    await check('.popover > collab-comments-composer');
    await page.evaluate(`document.querySelector('collab-comments').startComment()`);
    await page.getByRole('application').waitFor();
    await page.keyboard.press('Enter');
    await fill('.popover.composing');
    await check('.popover.composing');
    await page.keyboard.press('Escape');
  });
});
