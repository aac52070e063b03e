import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { servePage } from '../helpers/own-page.ts';
import { api, live, openPage, popover } from '../helpers/widget-page.ts';

t.test('the styles of the widget', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const browser = await openBrowser(t);
  for (const [userId, name] of [
    ['ann', 'Ann'],
    ['bob', 'Bob'],
  ])
    await api(cluster, 'PUT', `/users/${userId}`, { name });
  const { thread } = (await (
    await api(cluster, 'POST', '/rooms/own/threads', { userId: 'ann', body: 'The first', position: { x: 0.5, y: 0.1 } })
  ).json()) as { thread: { id: string } };
  for (const [userId, body] of [
    ['bob', 'The second for @Ann: https://example.com'],
    ['ann', 'The third'],
  ])
    await api(cluster, 'POST', `/threads/${thread.id}/comments`, { userId, body, mentions: ['ann'] });

  const viewport = { width: 1200, height: 900 };
  const contexts = {
    light: await browser.newContext({ viewport }),
    dark: await browser.newContext({ viewport, colorScheme: 'dark' }),
  };
  const opened: Page[] = [];

  /** A page with the thread and the panel open. */
  async function open(body: string, attributes = '', colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
    const page = await openPage(t, contexts[colorScheme], await servePage(t, cluster, body, attributes));
    opened.push(page);
    await live(page);
    await page.locator('collab-comments .pin').first().waitFor();
    await page.evaluate(
      `(() => { const widget = document.querySelector('collab-comments'); widget.openThread('${thread.id}'); widget.togglePanel(true); })()`,
    );
    await popover(page).getByText('The third').waitFor();
    await page.locator('collab-comments .panel').waitFor();
    return page;
  }

  /** A computed property of the first element of the widget that the selector finds. */
  const computed = (page: Page, selector: string, property: string): Promise<string> =>
    page.evaluate(
      `getComputedStyle(document.querySelector('collab-comments').shadowRoot.querySelector('${selector}')).getPropertyValue('${property}')`,
    );

  const closePages = async (): Promise<void> => {
    for (const page of opened.splice(0)) await page.close();
  };

  await t.test('rules of the page for every element do not reach into it', async (t) => {
    const hostile =
      '* { letter-spacing: 5px; text-transform: uppercase; word-spacing: 9px; text-indent: 20px; white-space: pre; line-height: 3; font-style: italic; color: red; cursor: wait; direction: ltr }';
    const [plain, styled] = [
      await open('<h1>Page</h1>', 'dir="rtl"', 'dark'),
      await open(`<style>${hostile}</style><h1>Page</h1>`, 'dir="rtl"', 'dark'),
    ];
    for (const selector of ['.popover h2', '.popover .body p', '.panel .item-body', 'textarea', 'time']) {
      for (const property of [
        'letter-spacing',
        'text-transform',
        'word-spacing',
        'text-indent',
        'white-space',
        'line-height',
        'font-style',
        'color',
        'cursor',
        'direction',
        'color-scheme',
        'font-family',
        'font-size',
      ]) {
        t.equal(
          await computed(styled, selector, property),
          await computed(plain, selector, property),
          `${property} of ${selector}`,
        );
      }
    }
    t.equal(await computed(plain, '.popover h2', 'color'), 'rgb(241, 241, 244)', 'dark');
    await closePages();
  });

  await t.test('the theme, the direction and the custom properties of the page do', async (t) => {
    const page = await open(
      '<style>collab-comments { --collab-text: rgb(1, 2, 3); --collab-font-size: 20px; --collab-font: monospace }</style><h1>Page</h1>',
      'dir="rtl"',
    );
    t.equal(await computed(page, '.popover h2', 'color'), 'rgb(1, 2, 3)');
    t.equal(await computed(page, '.popover h2', 'font'), '600 20px / 29px monospace');
    t.equal(await computed(page, '.popover h2', 'direction'), 'rtl');
    t.equal(await computed(page, '.popover', 'background-color'), 'rgb(255, 255, 255)');
    await page.evaluate(`document.querySelector('collab-comments').theme = 'dark'`);
    await until(async () => (await computed(page, '.popover', 'background-color')) === 'rgb(30, 31, 37)');
    await closePages();
  });

  await t.test('the radius is that of panel, field, items and buttons too', async (t) => {
    const radii = async (page: Page): Promise<string[]> =>
      Promise.all(
        ['.panel', '.popover', '.composer', '.item', '.search', '.actions', '.icon-button'].map((selector) =>
          computed(page, selector, 'border-radius'),
        ),
      );
    const page = await open('<style></style><h1>Page</h1>');
    const set = (radius: string): Promise<unknown> =>
      page.evaluate(`document.querySelector('style').textContent = 'collab-comments { --collab-radius: ${radius} }'`);
    t.same(await radii(page), ['16px', '12px', '10px', '10px', '10px', '10px', '8px']);
    await set('6px');
    t.same(await radii(page), ['8px', '6px', '5px', '5px', '5px', '5px', '4px']);
    for (const zero of ['0', '0px']) {
      await set(zero);
      t.same(new Set(await radii(page)), new Set(['0px']), zero);
    }
    await closePages();
  });

  await t.test('German texts are in order on a page from right to left, and stay on its side', async (t) => {
    const page = await open('<h1>Page</h1>', 'dir="rtl"');
    await page.evaluate(`document.querySelector('collab-comments').setAttribute('locale', 'de')`);
    await page.getByText('2 Antworten').waitFor();
    // The characters of a line that are left of the one before them.
    const misplaced = await page.evaluate<
      string[]
    >(`[...document.querySelector('collab-comments').shadowRoot.querySelectorAll('time, .quiet')].flatMap((element) => {
      const texts = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');
      return texts.flatMap((text) => {
        const range = document.createRange();
        const lefts = [...text.data].map((_, index) => { range.setStart(text, index); range.setEnd(text, index + 1); return range.getBoundingClientRect(); }).filter(({ width }) => width > 0);
        return lefts.some(({ left, top }, index) => index > 0 && top === lefts[index - 1].top && left < lefts[index - 1].left) ? [text.data] : [];
      });
    })`);
    t.same(misplaced, []);
    const [replies, head] = await page.evaluate<[number, number]>(
      `['.replies', '.item-text'].map((selector) => document.querySelector('collab-comments').shadowRoot.querySelector(selector).getBoundingClientRect().right)`,
    );
    t.equal(replies, head);
  });

  await t.test('a language is loaded where it is chosen, and one from right to left turns the widget', async (t) => {
    const page = await open('<h1>Page</h1>');
    const loaded: string[] = [];
    page.on('request', (request) =>
      loaded.push(...(/\/widget\/(\w+(?:-\w+)*)-\w+\.js/.exec(request.url())?.slice(1) ?? [])),
    );
    await page.evaluate(`document.querySelector('collab-comments').setAttribute('locale', 'pl-PL')`);
    await page.getByText('2 odpowiedzi').waitFor();
    await page.evaluate(`document.querySelector('collab-comments').setAttribute('locale', 'ar')`);
    await page.getByText('ردّان').waitFor();
    t.same(
      loaded.filter((name) => name !== 'chunk'),
      ['languages', 'pl', 'ar'],
      'no other language',
    );
    const root = page.locator('collab-comments .root');
    t.equal(await root.getAttribute('lang'), 'ar');
    const [panel, width] = await page.evaluate<[number, number]>(
      `[document.querySelector('collab-comments').shadowRoot.querySelector('.panel').getBoundingClientRect().right, innerWidth]`,
    );
    t.equal(await root.getAttribute('dir'), 'rtl');
    t.ok(panel < width / 2 + 200, 'the panel is at the end of the line, on the left');
    await page.evaluate(`document.querySelector('collab-comments').setAttribute('locale', 'sv')`);
    await page.getByText('2 replies').waitFor();
    t.equal(await root.getAttribute('dir'), 'ltr');
    await closePages();
  });

  // One page for what follows: each changes what it needs, and changes it back.
  await closePages();
  const page = await open('<h1>Page</h1>');

  await t.test('text is readable with any brand colour, in light and dark', async (t) => {
    await popover(page).locator('textarea').fill('So that it can be sent');
    await popover(page).locator('.send[aria-disabled=false]').waitFor();
    await page.evaluate("document.querySelector('collab-comments').style.setProperty('--collab-link', 'rgb(1, 2, 3)')");
    t.equal(await computed(page, '.body a', 'color'), 'rgb(1, 2, 3)', 'the page may choose the colour of links');
    await page.evaluate("document.querySelector('collab-comments').style.removeProperty('--collab-link')");
    const accents = [
      '#000',
      '#fff',
      '#ffd400',
      '#0000ff',
      '#00ff00',
      '#ff0000',
      '#ff00ff',
      '#777',
      '#0a1a5c',
      'hsl(16 100% 50%)',
      'oklch(0.7 0.3 150)',
    ];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      // The contrast of text or icon with the first background behind it that is not transparent.
      const contrasts = await page.evaluate<[accent: string, selector: string, contrast: number][]>(`(() => {
        const luminance = (color) => {
          const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
          canvas.fillStyle = color;
          canvas.fillRect(0, 0, 1, 1);
          const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const widget = document.querySelector('collab-comments');
        return ${JSON.stringify(accents)}.flatMap((accent) => {
          widget.style.setProperty('--collab-accent', accent);
          return ['.send', '.body a', '.mention.self'].map((selector) => {
            let behind = widget.shadowRoot.querySelector(selector);
            const text = luminance(getComputedStyle(behind).color);
            while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
            const background = luminance(getComputedStyle(behind).backgroundColor);
            return [accent, selector, (Math.max(text, background) + 0.05) / (Math.min(text, background) + 0.05)];
          });
        });
      })()`);
      for (const [accent, selector, contrast] of contrasts)
        t.ok(contrast >= 4.5, `${accent} in ${colorScheme}: ${selector} has ${contrast}`);
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.evaluate("document.querySelector('collab-comments').style.removeProperty('--collab-accent')");
  });

  await t.test(
    'with forced colours, what has the focus, is selected or floats has lines and colours of the system',
    async (t) => {
      await page.emulateMedia({ forcedColors: 'active' });
      const system = await page.evaluate<Record<string, string>>(`(() => {
      const probe = document.body.appendChild(document.createElement('i'));
      return Object.fromEntries(['Highlight', 'HighlightText', 'CanvasText'].map((name) => { probe.style.color = name; return [name, getComputedStyle(probe).color]; }));
    })()`);
      for (const selector of ['.panel', '.popover', '.search', '.actions']) {
        t.same(
          [await computed(page, selector, 'border-top-style'), await computed(page, selector, 'border-top-color')],
          ['solid', system['CanvasText']],
          `${selector} has an edge`,
        );
      }
      t.not(await computed(page, '.pin', 'border-top-style'), 'none', 'a pin has an edge');
      for (const selector of ['.pin.open', '.tabs [aria-checked=true]']) {
        t.same(
          [await computed(page, selector, 'background-color'), await computed(page, selector, 'color')],
          [system['Highlight'], system['HighlightText']],
          `${selector} is seen to be selected`,
        );
      }
      t.equal(
        await computed(page, '.composer', 'outline-color'),
        system['Highlight'],
        'the field that has the focus is',
      );
      t.equal(
        await computed(page, '.item-main[aria-current=true]', 'border-inline-start-color'),
        system['Highlight'],
        'so is the open thread in the list',
      );
      await page.locator('collab-comments .search input').focus();
      t.equal(await computed(page, '.search', 'outline-color'), system['Highlight'], 'a field has a visible focus');
      await page.keyboard.press('Tab');
      t.same(
        [
          await computed(page, '.tabs [aria-checked=true]', 'outline-style'),
          await computed(page, '.tabs [aria-checked=true]', 'outline-color'),
        ],
        ['solid', system['Highlight']],
        'the keyboard shows where it is',
      );
      await page.locator('collab-comments .pin').first().focus();
      t.same(
        [await computed(page, '.pin', 'outline-style'), await computed(page, '.pin', 'outline-color')],
        ['solid', system['Highlight']],
        'so it does on a pin',
      );
      await page.emulateMedia({ forcedColors: 'none' });
    },
  );

  await t.test('nothing of it is printed', async (t) => {
    await page.emulateMedia({ media: 'print' });
    t.equal(await page.locator('collab-comments').isVisible(), false);
    t.equal(await page.locator('collab-comments .pin').first().isVisible(), false);
  });
});
