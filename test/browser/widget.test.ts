import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { serveHtml } from '../helpers/own-page.ts';
import { api, comment, live, openDemo, openPage, pin, popover, violations } from '../helpers/widget-page.ts';

const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC',
  'base64',
);

t.test('the widget in a browser', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  await api(cluster, 'PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' });
  await api(cluster, 'PUT', '/users/maria', { name: 'Maria' });
  const browser = await openBrowser(t);
  const viewport = { width: 1200, height: 900 };
  const reducedMotion = 'no-preference';
  const ann = await openDemo(t, await browser.newContext({ viewport, reducedMotion }), cluster, 'ann', /status of 413/);
  const bob = await openDemo(
    t,
    await browser.newContext({ viewport, reducedMotion, colorScheme: 'dark' }),
    cluster,
    'bob',
  );

  await t.test(
    'a pin stays on its element while the page changes, and is listed when the element is gone',
    async (t) => {
      await comment(ann, '#note-price', 'Which price list?');
      await ann.keyboard.press('Escape');
      const offset = (): Promise<[number, number]> =>
        ann.evaluate(`(() => {
      const target = document.querySelector('#note-price, [data-moved]').getBoundingClientRect();
      const mark = document.querySelector('collab-comments').shadowRoot.querySelector('.pin')?.getBoundingClientRect() ?? { left: 0, bottom: 0 };
      return [Math.round(mark.left - (target.left + target.width / 2)), Math.round(mark.bottom - (target.top + target.height / 2))];
    })()`);
      const near = async (message: string): Promise<void> => {
        await until(async () => (await offset()).every((off) => Math.abs(off) <= 2));
        t.pass(message);
      };
      await near('where it was placed');
      await ann.setViewportSize({ width: 800, height: 900 });
      await near('in a narrower window');
      await ann.evaluate(`document.querySelector('main').insertAdjacentText('afterbegin', 'News '.repeat(200))`);
      await near('below something new');
      await ann.evaluate(`(() => {
      const note = document.querySelector('#note-price');
      const again = document.createElement('p');
      again.textContent = note.textContent.replace('cheaper', 'much cheaper');
      again.dataset.moved = '';
      note.remove();
      document.querySelector('.figures').after(again);
    })()`);
      await near('rendered again elsewhere, with an edited text and without its id');
      await ann.evaluate(`document.querySelector('[data-moved]').remove()`);
      await pin(ann, 'Which price').waitFor({ state: 'detached' });
      await ann.getByRole('button', { name: /Show comments/ }).click();
      await ann.getByText('No longer on the page').waitFor();
      await ann.getByRole('button', { name: 'Pin again' }).click();
      await ann.getByRole('application').waitFor();
      await ann.keyboard.press('Enter');
      await pin(ann, 'Which price').waitFor();
      await pin(bob, 'Which price').waitFor();
      await ann.getByRole('complementary', { name: 'Comments' }).getByRole('button', { name: 'Close' }).click();
      await ann.reload();
      await live(ann);
      await ann.setViewportSize(viewport);
    },
  );

  await t.test(
    'files by chooser, drop and paste, a mention, a reaction and hostile text reach the other page',
    async (t) => {
      await comment(ann, '#summary', 'Start');
      const composer = popover(ann).locator('.composer');
      await composer
        .getByLabel('Attach a file')
        .setInputFiles({ name: 'chosen.png', mimeType: 'image/png', buffer: picture });
      for (const [event, name] of [
        ['drop', 'dropped.png'],
        ['paste', 'pasted.png'],
      ] as const) {
        const make =
          event === 'drop'
            ? "new DragEvent('drop', { dataTransfer: transfer"
            : "new ClipboardEvent('paste', { clipboardData: transfer";
        await ann.evaluate(`(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([Uint8Array.from(atob('${picture.toString('base64')}'), (letter) => letter.charCodeAt(0))], '${name}', { type: 'image/png' }));
        const target = document.querySelector('collab-comments').shadowRoot.querySelector('.popover textarea');
        target.dispatchEvent(${make}, bubbles: true, cancelable: true, composed: true }));
      })()`);
        await composer.getByText(name).waitFor();
      }
      await composer.locator('progress').first().waitFor({ state: 'detached' });
      const field = composer.locator('textarea');
      const text = `<img src=x onerror=alert(1)><style>*{display:none}</style> **bold** \u202Ereversed\u200B [x](javascript:alert(1)) 👩‍👩‍👧`;
      await field.fill(`${text} @Mar`);
      await field.press('End');
      await ann.getByRole('option', { name: 'Maria' }).waitFor();
      await field.press('Enter');
      t.match(await field.inputValue(), /@Maria $/);
      await field.press('Enter');
      await popover(bob).waitFor({ state: 'detached' });
      await pin(bob, 'Start').click();
      const arrived = popover(bob).locator('.comment').nth(1);
      await arrived.locator('.thumb img').nth(2).waitFor();
      t.equal(await arrived.locator('.body img, .body style, .body a').count(), 0);
      t.match(
        await arrived.locator('.body').innerText(),
        '<img src=x onerror=alert(1)><style>*{display:none}</style> bold reversed [x](javascript:alert(1)) 👩‍👩‍👧 @Maria',
      );
      await arrived.hover();
      await arrived.getByRole('button', { name: 'Add a reaction' }).click();
      await bob.getByRole('button', { name: 'React with 🎉' }).click();
      await popover(ann).getByRole('button', { name: '🎉 1: Bob' }).waitFor();
      await arrived.getByRole('button', { name: 'Open chosen.png' }).click();
      await bob.getByRole('dialog', { name: 'Attachment viewer' }).locator('img').waitFor();
      await bob.keyboard.press('Escape');
      await api(cluster, 'POST', '/rooms/demo/threads', {
        userId: 'ci-bot',
        body: 'x'.repeat(10_000),
        position: { x: 0.1, y: 0.9 },
      });
      await pin(bob, 'xxxx').waitFor();
    },
  );

  await t.test('a draft survives a reload, a refused file is named, and what was written stays', async (t) => {
    await popover(ann).locator('.composer textarea').fill('Half of a');
    await ann.reload();
    await live(ann);
    await pin(ann, 'Start').click();
    t.equal(await popover(ann).locator('.composer textarea').inputValue(), 'Half of a');
    const large = { name: 'large.png', mimeType: 'image/png', buffer: Buffer.alloc(11 * 1024 * 1024) };
    await popover(ann).getByLabel('Attach a file').setInputFiles(large);
    await ann.getByText('large.png is too large. Files may have at most 10 MB.').waitFor();
    t.equal(await popover(ann).locator('.composer textarea').inputValue(), 'Half of a');
  });

  await t.test('axe finds nothing, in light and dark, with everything open', async (t) => {
    t.strictSame(await violations(ann), [], 'with the toolbar and a thread');
    await bob.getByRole('button', { name: 'Add a comment' }).click();
    await bob.getByRole('application').waitFor();
    t.strictSame(await violations(bob), [], 'while a place is chosen');
    await bob.keyboard.press('Escape');
    await ann.getByRole('button', { name: /Show comments/ }).click();
    await bob.getByRole('button', { name: /Show comments/ }).click();
    t.strictSame(await violations(ann), []);
    t.strictSame(await violations(bob), []);
    await popover(ann).getByRole('button', { name: 'Open chosen.png' }).click();
    await ann.getByRole('dialog', { name: 'Attachment viewer' }).locator('img').waitFor();
    t.strictSame(await violations(ann), [], 'with a picture open');
    await ann.keyboard.press('Escape');
  });

  await t.test(
    'a link leads to a comment; search, filters and resolve work; Escape returns the focus to the pin',
    async (t) => {
      const { items } = (await (await api(cluster, 'GET', '/rooms/demo/threads?userId=ann')).json()) as {
        items: { id: string }[];
      };
      await bob.keyboard.press('Escape');
      await bob.goto(`${cluster.url}/demo/page?user=bob#collab=${items[0]?.id}`);
      await bob.reload();
      await popover(bob).getByText('Start').waitFor();
      await popover(bob).getByRole('button', { name: 'Resolve' }).click();
      await pin(bob, 'Start').waitFor({ state: 'detached' });
      await pin(bob, 'Which price').focus();
      await bob.keyboard.press('Enter');
      await popover(bob).getByLabel('Reply…').waitFor();
      await bob.keyboard.press('Escape');
      t.equal(await bob.evaluate(`document.activeElement.shadowRoot.activeElement.classList.contains('pin')`), true);
      await bob.getByRole('button', { name: /Show comments/ }).click();
      await bob.getByRole('radio', { name: 'Resolved' }).click();
      await bob.locator('.item', { hasText: 'Start' }).waitFor();
      await bob.getByRole('radio', { name: 'Open' }).click();
      await bob.getByRole('searchbox').fill('price list');
      t.equal(await bob.locator('.item').count(), 1);
      await bob.getByRole('searchbox').fill('nothing like it');
      await bob.getByText('No comment contains “nothing like it”.').waitFor();
    },
  );

  await t.test(
    'on a phone a thread is a sheet at the bottom; in German from right to left nothing overflows',
    async (t) => {
      const phone = await openDemo(
        t,
        await browser.newContext({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }),
        cluster,
        'ann',
      );
      for (const [x, edge] of [
        [0, 'left'],
        [1, 'right'],
      ]) {
        await api(cluster, 'POST', '/rooms/demo/threads', {
          userId: 'ci-bot',
          body: `At the ${edge} edge`,
          position: { x, y: 0.02 },
        });
        await pin(phone, `At the ${edge} edge`).waitFor();
      }
      t.equal(
        await phone.evaluate('document.documentElement.scrollWidth'),
        390,
        'a pin at the edge does not make the page wider',
      );
      await phone.getByRole('button', { name: 'Add a comment' }).tap();
      t.equal(
        await phone.locator('collab-comments .hint > span').innerText(),
        'Tap where the comment belongs.',
        'no keys',
      );
      await phone.keyboard.press('Escape');
      await pin(phone, 'Which price').tap();
      const sheet = await popover(phone).boundingBox();
      t.match(sheet, { x: 0, width: 390 });
      t.equal(Math.round((sheet?.y ?? 0) + (sheet?.height ?? 0)), 780);
      await phone.evaluate(
        `document.documentElement.dir = 'rtl'; document.querySelector('collab-comments').setAttribute('locale', 'de')`,
      );
      await popover(phone).getByLabel('Antworten …').waitFor();
      t.equal(await phone.evaluate('document.documentElement.scrollWidth'), 390);
      t.strictSame(await violations(phone), []);
    },
  );

  await t.test(
    'a page of another origin with a strict policy shows it in a frame too; wrong credentials are explained',
    async (t) => {
      const session = (await (await fetch(`${cluster.url}/demo/session?user=ann`)).json()) as {
        publishableKey: string;
        token: string;
      };
      const element = (key: string, token: string): string =>
        `<collab-comments publishable-key="${key}" room="strict" token="${token}"></collab-comments>`;
      const html = (body: string): string =>
        `<!doctype html><html lang="en"><title>Strict</title><script type="module" src="${cluster.url}/widget.js"></script><body><h1 id="title">Strict</h1>${body}`;
      const policy = {
        'Content-Security-Policy': `default-src 'none'; script-src ${cluster.url}; connect-src ${cluster.url} ${cluster.url.replace('http', 'ws')}; img-src blob:; style-src 'self'; frame-src *`,
      };
      const strict = await serveHtml(t, html(element(session.publishableKey, session.token)), policy);
      const context = await browser.newContext({ viewport });
      const page = await openPage(t, context, strict);
      await live(page);
      await comment(page, '#title', 'Under a strict policy');
      const outer = await serveHtml(
        t,
        `<!doctype html><title>Outer</title><iframe src="${strict}" width="900" height="700" title="inner"></iframe>`,
        policy,
      );
      const framed = await openPage(t, context, outer);
      await framed.frameLocator('iframe').locator('.pin').waitFor();

      for (const [key, token, expected] of [
        ['pk_wrong', session.token, 'This page’s key is not valid'],
        [session.publishableKey, 'not.a.token', 'Your sign-in was not accepted'],
      ] as const) {
        const refused = await openPage(t, context, await serveHtml(t, html(element(key, token)), policy));
        await refused.getByText(expected).waitFor();
        await refused.close();
      }
    },
  );
});
