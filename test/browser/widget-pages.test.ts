import { build } from 'esbuild';
import type { Page } from 'playwright-core';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { serveHtml, servePage } from '../helpers/own-page.ts';
import { api, comment, field, live, openPage, pin, popover } from '../helpers/widget-page.ts';

t.test('pins on pages that zoom, scroll, move and open dialogs', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1200, height: 900 } });
  const page = await openPage(
    t,
    context,
    await servePage(t, cluster, '<style>p, button { padding: 20px }</style><main></main>'),
  );
  await live(page);

  const show = async (html: string): Promise<void> => {
    // The pin of a thread can be there before the thread is in a list.
    await until(async () => {
      const { items } = (await (await api(cluster, 'GET', '/rooms/own/threads')).json()) as { items: { id: string }[] };
      for (const { id } of items) await api(cluster, 'DELETE', `/threads/${id}`);
      return (await page.locator('collab-comments .pin').count()) === 0;
    });
    await page.evaluate(`document.querySelector('main').innerHTML = ${JSON.stringify(html)}`);
  };
  /**
   * How far the only pin is from the middle of an element, in pixels; null if there is none. `element` is an
   * expression.
   */
  const distance = (element: string): string => `(() => {
    const mark = document.querySelector('collab-comments').shadowRoot.querySelector('.pin')?.getBoundingClientRect();
    if (mark === undefined) return null;
    const { left, top, width, height } = ${element}.getBoundingClientRect();
    return Math.round(Math.hypot(mark.left - left - width / 2, mark.bottom - top - height / 2));
  })()`;
  const target = "document.querySelector('#target')";
  const near = (of: Page = page, element = target): Promise<void> =>
    until(() =>
      of.evaluate<boolean>(`(() => { const far = ${distance(element)}; return far !== null && far <= 2; })()`),
    );
  const gone = (): Promise<void> => page.locator('collab-comments .pin').waitFor({ state: 'detached' });

  await t.test('a zoom of the page or of its body moves no pin away from its element', async () => {
    await show('<p>Before</p><p id="target">The middle one of three paragraphs</p><p>After</p>');
    await comment(page, '#target', 'Zoomed');
    for (const zoomed of ['documentElement', 'body']) {
      await page.evaluate(`document.${zoomed}.style.zoom = 1.25`);
      await near();
      await page.evaluate(`document.${zoomed}.style.zoom = ''`);
      await near();
    }
    await page.evaluate("document.body.style.zoom = 1.5; document.querySelector('#target').remove()");
    await gone();
    await page.evaluate("document.body.style.zoom = ''");
    await page.keyboard.press('Escape');
  });

  /** Counts the frames that the page and the widget ask for, and keeps them back while the page says it is hidden. */
  const watchFrames = `(() => {
    const real = requestAnimationFrame;
    const kept = [];
    window.asked = 0;
    window.isHidden = false;
    Object.defineProperty(document, 'hidden', { get: () => isHidden, configurable: true });
    window.requestAnimationFrame = (call) => ((asked += 1), isHidden ? kept.push(call) : real.call(window, call));
    window.setHidden = (hidden) => {
      isHidden = hidden;
      document.dispatchEvent(new Event('visibilitychange'));
      if (!hidden) for (const call of kept.splice(0)) requestAnimationFrame(call);
    };
    const frame = () => new Promise((resolve) => real.call(window, resolve));
    // Whoever follows something asks in each frame for the next one.
    window.resting = async () => {
      for (let still = 0, seen = asked; still < 10; seen = asked) {
        await frame();
        still = asked === seen ? still + 1 : 0;
      }
    };
    // The most frames in a row after which the pin was not where it belongs.
    window.lag = async (text, element, change, frames) => {
      await resting();
      const pins = document.querySelector('collab-comments').shadowRoot.querySelectorAll('.pin');
      const pin = [...pins].find((each) => each.ariaLabel.includes(text));
      const offset = () => {
        const mark = pin.getBoundingClientRect();
        const { left, top, width, height } = element.getBoundingClientRect();
        return Math.hypot(mark.left - left - width / 2, mark.bottom - top - height / 2);
      };
      const from = element.getBoundingClientRect();
      let [late, most, moved] = [0, 0, 0];
      change();
      for (let n = 0; n < frames; n += 1) {
        await frame();
        // What a frame shows is known after it.
        await new Promise((resolve) => setTimeout(resolve));
        late = offset() > 3 ? late + 1 : 0;
        most = Math.max(most, late);
        const { left, top } = element.getBoundingClientRect();
        moved = Math.max(moved, Math.hypot(left - from.left, top - from.top));
      }
      return { most, hasMoved: moved > 20, isThere: offset() <= 3 };
    };
  })()`;

  await t.test('a pin follows within two frames what moves its element, also without any event', async (t) => {
    await show(`<style>
        [data-large] { height: 120px }
        #box:checked ~ #target { margin-left: 80px }
        #eased { transition: margin-top 200ms }
      </style>
      <input type="checkbox" id="box"><p id="space">Before</p><p id="eased">Eased</p>
      <p id="target">The middle one of three paragraphs</p>
      <svg width="300" height="60"><rect id="bar" x="10" y="10" width="60" height="40"><title>Sales</title></rect></svg>
      <div id="host"></div>`);
    await page.evaluate(`document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
      '<style>[data-large] { height: 90px }</style><p id="inner-space">Before</p><p id="inner">In the root of a host</p>'`);
    for (const [selector, text] of [
      ['#target', 'Moves'],
      ['#bar', 'A bar'],
      ['#inner', 'Within'],
    ] as const) {
      await comment(page, selector, text);
      await page.keyboard.press('Escape');
    }
    await page.evaluate(watchFrames);
    const inner = "document.querySelector('#host').shadowRoot.querySelector";
    const grow = (element: string): string =>
      `${element}.animate([{ marginTop: '0px' }, { marginTop: '200px' }], { duration: 200, fill: 'forwards' })`;
    const changes: Readonly<Record<string, readonly [text: string, element: string, change: string]>> = {
      'a data attribute that a style sheet reads': [
        'Moves',
        target,
        "document.querySelector('#space').dataset.large = ''",
      ],
      'a checkbox, without an event': ['Moves', target, "document.querySelector('#box').checked = true"],
      'an animation of a script': ['Moves', target, grow("document.querySelector('#space')")],
      'a transition': ['Moves', target, "document.querySelector('#eased').style.marginTop = '120px'"],
      'an adopted style sheet': [
        'Moves',
        target,
        "{ const sheet = new CSSStyleSheet(); sheet.replaceSync('#target { margin-top: 90px }'); document.adoptedStyleSheets = [sheet]; }",
      ],
      'a rule that is inserted': [
        'Moves',
        target,
        "document.adoptedStyleSheets[0].insertRule('#target { margin-left: 70px; position: relative; top: 40px }')",
      ],
      'an attribute of a shape': [
        'A bar',
        "document.querySelector('#bar')",
        "document.querySelector('#bar').setAttribute('x', '200')",
      ],
      'a data attribute in a shadow root': [
        'Within',
        `${inner}('#inner')`,
        `${inner}('#inner-space').dataset.large = ''`,
      ],
      'an animation in a shadow root': ['Within', `${inner}('#inner')`, grow(`${inner}('#inner-space')`)],
    };
    for (const [name, [text, element, change]] of Object.entries(changes)) {
      const { most, ...outcome } = await page.evaluate<{ most: number }>(
        `lag('${text}', ${element}, () => { ${change} }, 20)`,
      );
      t.match(outcome, { hasMoved: true, isThere: true }, name);
      t.ok(most <= 2, `${name}: ${most} frames behind`);
    }
  });

  await t.test('while the page is hidden nothing is searched, and pins are right once it is seen', async (t) => {
    await page.evaluate('resting()');
    await page.evaluate(`(() => {
      const search = document.querySelectorAll;
      window.searches = 0;
      document.querySelectorAll = function (selector) {
        if (selector === '*') searches += 1;
        return search.call(this, selector);
      };
      setHidden(true);
      document.querySelector('#target').before(Object.assign(document.createElement('p'), { textContent: 'Another one' }));
    })()`);
    // The timer of the widget is at most 250 ms, and later ones run later.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 300))');
    t.equal(await page.evaluate('searches'), 0);
    await page.evaluate('setHidden(false)');
    await until(() => page.evaluate<boolean>('searches > 0'));
    t.match(await page.evaluate(`lag('Moves', ${target}, () => {}, 1)`), { isThere: true });
    await page.evaluate('document.adoptedStyleSheets = []');
  });

  await t.test('pins that only move are placed and not rendered, until others overlap', async (t) => {
    await show(`<style>i { position: absolute; left: 100px; width: 20px; height: 20px; background: red }</style>
      <i id="one" style="top: 100px" title="One"></i><i id="other" style="top: 200px" title="Other"></i>`);
    for (const id of ['one', 'other']) {
      await comment(page, `#${id}`, id);
      await page.keyboard.press('Escape');
    }
    const element = (id: string): string => `document.querySelector('#${id}')`;
    /** Waits until the pins are on their elements, in this order. */
    const placed = (...ids: readonly string[]): Promise<void> =>
      until(() =>
        page.evaluate<boolean>(`(() => {
          const pins = [...document.querySelector('collab-comments').shadowRoot.querySelectorAll('.layer > .pin')];
          return pins.length === ${ids.length} && [${ids.map(element).join()}].every((element) => {
            const { left, top } = element.getBoundingClientRect();
            return pins.some((pin) => { const box = pin.getBoundingClientRect(); return Math.hypot(box.left - left - 10, box.bottom - top - 10) <= 2; });
          });
        })()`),
      );
    await placed('one', 'other');
    await page.evaluate(`(() => {
      window.rendered = 0;
      const { prototype } = customElements.get('collab-comments');
      const { render } = prototype;
      prototype.render = function () { rendered += 1; return render.call(this); };
    })()`);
    const moves = 12;
    for (let move = 1; move <= moves; move++) {
      await page.evaluate(`${element('one')}.style.top = '${move % 2 === 0 ? 100 : 150}px'`);
      await placed('one', 'other');
    }
    // Other things are rendered too, such as the end of a message.
    const rendered = await page.evaluate<number>('rendered');
    t.ok(rendered < moves / 2, `${rendered} of ${moves} moves rendered`);
    await page.evaluate(`${element('one')}.style.top = '195px'`);
    await until(async () => (await page.locator('collab-comments .pin.cluster').count()) === 1);
    await page.evaluate(`${element('one')}.style.top = '60px'`);
    await placed('one', 'other');
    await page.evaluate(`${element('other')}.style.visibility = 'hidden'`);
    await placed('one');
    await page.evaluate(`${element('other')}.style.visibility = ''; ${element('one')}.style.top = '100px'`);
    await placed('one', 'other');
  });

  await t.test(
    'a pin is hidden under a sticky header, shown in a fixed box within one that cuts, and that of a new comment follows what scrolls',
    async () => {
      await show(
        '<div style="position: sticky; top: 0; height: 100px; background: gray; z-index: 1">Header</div><p id="target">A paragraph that scrolls away</p><div style="height: 2000px"></div>',
      );
      await comment(page, '#target', 'Covered');
      await page.keyboard.press('Escape');
      await near();
      await page.evaluate('scrollTo(0, 80)');
      await gone();
      await page.evaluate('scrollTo(0, 0)');
      await near();

      await show(
        '<div style="overflow: hidden; width: 50px; height: 50px"><p id="target" style="position: fixed; left: 400px; top: 300px">In a fixed box</p></div>',
      );
      await comment(page, '#target', 'Fixed');
      await page.keyboard.press('Escape');
      await near();

      await show(
        '<div id="box" style="overflow: auto; height: 300px; width: 500px"><p style="height: 120px">First</p><p id="target">Second of the lines</p><div style="height: 1000px"></div></div>',
      );
      await page.getByRole('button', { name: 'Add a comment' }).click();
      const { x, y, width, height } = (await page.locator('#target').boundingBox()) ?? {
        x: 0,
        y: 0,
        width: 0,
        height: 0,
      };
      await page.getByRole('application').waitFor();
      await page.mouse.click(x + width / 2, y + height / 2);
      await page.getByLabel('Add a comment…').waitFor();
      await near();
      await page.evaluate("document.querySelector('#box').scrollTop = 60");
      await near();
      await page.keyboard.press('Escape');
    },
  );

  await t.test('the widget is usable in a modal dialog, and in its place again when that closes', async (t) => {
    await show('<p>Page</p><dialog style="width: 600px; height: 400px"><p id="target">In the dialog</p></dialog>');
    await page.evaluate("document.querySelector('dialog').showModal()");
    await until(() => page.evaluate<boolean>("document.querySelector('dialog collab-comments:popover-open') !== null"));
    await comment(page, '#target', 'In here');
    await near();
    await field(page).fill('A draft that stays');
    await page.evaluate("document.querySelector('dialog').close()");
    await until(() =>
      page.evaluate<boolean>("document.querySelector('collab-comments').parentElement === document.body"),
    );
    t.equal(await page.evaluate("document.querySelector('collab-comments').hasAttribute('popover')"), false);
    t.equal(await popover(page).isVisible(), true, 'the thread stays open');
    t.equal(await field(page).inputValue(), 'A draft that stays');
    await field(page).fill('');
    await page.evaluate("document.querySelector('dialog').showModal()");
    await pin(page, 'In here').waitFor();
    await page.evaluate("document.querySelector('dialog').remove()");
    await until(() =>
      page.evaluate<boolean>("document.querySelector('collab-comments')?.parentElement === document.body"),
    );
    await live(page);
    t.equal(
      await page.evaluate("document.querySelector('collab-comments').hasAttribute('popover')"),
      false,
      'it is back when the dialog is removed with it',
    );
  });

  await t.test('elements in an open shadow root and in a zoomed frame have pins of their own', async () => {
    const inside = async (name: string, element: string): Promise<void> => {
      await page.evaluate(
        `(() => { window.middle = ((element) => { let { left, top, width, height } = element.getBoundingClientRect(); return [left + width / 2, top + height / 2]; })(${element}); })()`,
      );
      const [x, y] = await page.evaluate<[number, number]>('window.middle');
      const [left, top, scale] = await page.evaluate<[number, number, number]>(
        `(() => { const frame = ${element}.ownerDocument.defaultView.frameElement; if (frame === null) return [0, 0, 1]; const box = frame.getBoundingClientRect(); return [box.left, box.top, 2]; })()`,
      );
      await page.getByRole('button', { name: 'Add a comment' }).click();
      await page.getByRole('application').waitFor();
      await page.mouse.click(left + x * scale, top + y * scale);
      await page.getByLabel('Add a comment…').fill(name);
      await page.keyboard.press('Enter');
      await pin(page, name).waitFor();
      await page.keyboard.press('Escape');
    };
    await show('<div id="host"></div>');
    await page.evaluate(
      "document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML = '<p>First in the root</p><p>Second in the root</p>'",
    );
    const second = "document.querySelector('#host').shadowRoot.querySelectorAll('p')[1]";
    await inside('Shadow', second);
    await near(page, second);
    await page.evaluate(
      "document.querySelector('#host').shadowRoot.querySelector('p').before(Object.assign(document.createElement('p'), { textContent: 'Inserted' }))",
    );
    await near(page, "document.querySelector('#host').shadowRoot.querySelectorAll('p')[2]");

    await show(
      '<iframe style="zoom: 2; border: 0; width: 300px; height: 200px" srcdoc="<p>First in the frame</p><p>Second in the frame</p>"></iframe>',
    );
    await page.frameLocator('iframe').locator('p').nth(1).waitFor();
    await inside('Framed', "document.querySelector('iframe').contentDocument.querySelectorAll('p')[1]");
    const framed = `{ getBoundingClientRect() {
      const frame = document.querySelector('iframe');
      const box = frame.getBoundingClientRect();
      const { left, top, width, height } = frame.contentDocument.querySelectorAll('p')[1].getBoundingClientRect();
      return { left: box.left + left * 2, top: box.top + top * 2, width: width * 2, height: height * 2 };
    } }`;
    await near(page, framed);
    await page.evaluate("document.querySelector('iframe').contentDocument.querySelectorAll('p')[1].remove()");
    await gone();
    await page.evaluate("document.querySelector('iframe').contentWindow.location.reload()");
    await near(page, framed);
  });

  const token = async (rooms?: readonly string[]): Promise<string> =>
    ((await (await api(cluster, 'POST', '/users/ann/tokens', { rooms })).json()) as { token: string }).token;
  /** Counts the WebSockets that the page opens. */
  const countSockets = (of: Page): { count: number } => {
    const sockets = { count: 0 };
    of.on('websocket', () => (sockets.count += 1));
    return sockets;
  };

  await t.test('React hydrates what its server has rendered, after the widget has started', async (t) => {
    const props = {
      'publishable-key': cluster.keys.publishableKey,
      room: 'own',
      token: await token(),
      theme: 'dark',
      cursors: true,
    } as const;
    const app = `createElement('collab-comments', ${JSON.stringify(props)})`;
    const contents = `import { createElement } from 'react'; import { hydrateRoot } from 'react-dom/client'; window.hydrate = () => hydrateRoot(document.querySelector('#root'), ${app});`;
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: '.' },
      bundle: true,
      write: false,
      format: 'iife',
      define: { 'process.env.NODE_ENV': '"development"' },
    });
    const script = (outputFiles[0]?.text ?? '').replaceAll('</script', '<\\/script');
    const rendered = renderToString(createElement('collab-comments', props));
    const html = `<!doctype html><html lang="en"><title>Own</title><script type="module" src="${cluster.url}/widget.js"></script><body><div id="root">${rendered}</div><script>${script}</script>`;
    // Whatever the page logs as an error fails the test, also what React says of hydration.
    const own = await openPage(t, context, await serveHtml(t, html));
    await live(own);
    t.equal(
      await own.evaluate("document.querySelector('collab-comments').outerHTML"),
      rendered,
      'the element is as the server wrote it',
    );
    const sockets = countSockets(own);
    await own.evaluate('(hydrate(), new Promise((resolve) => requestIdleCallback(resolve)))');
    t.equal(await own.locator('collab-comments .toolbar').isVisible(), true);
    t.equal(sockets.count, 0, 'it keeps its connection');
    await own.close();
  });

  await t.test('another room is shown on the same connection, unless it needs another token', async (t) => {
    const own = await context.newPage();
    const sockets = countSockets(own);
    await own.goto(await servePage(t, cluster, '<h1>Page</h1>'));
    await live(own);
    await own.evaluate(`window.show = async (room) => {
      const widget = document.querySelector('collab-comments');
      const ready = new Promise((resolve) => widget.addEventListener('collab-ready', resolve, { once: true }));
      widget.room = room;
      return (await ready).detail.threads;
    }`);
    await api(cluster, 'POST', '/rooms/room-3/threads', {
      userId: 'ann',
      body: 'In the third',
      position: { x: 0.5, y: 0.5 },
    });
    const counts: number[] = [];
    for (const number of [1, 2, 3, 4, 5, 6]) counts.push(await own.evaluate<number>(`show('room-${number}')`));
    t.same(counts, [0, 0, 1, 0, 0, 0]);
    t.equal(sockets.count, 1);
    const first = await own.evaluate(`(() => {
      const tokens = ${JSON.stringify({ 'room-3': await token(['room-3']), 'room-4': await token(['room-4']) })};
      Object.assign(document.querySelector('collab-comments'), { token: '', tokenProvider: () => tokens[document.querySelector('collab-comments').room] });
      return show('room-3');
    })()`);
    t.equal(first, 1, 'with a token that names it');
    t.equal(sockets.count, 2, 'the token of the page is another one');
    t.equal(
      await own.evaluate("show('room-4')"),
      0,
      'which the server refuses on the connection that was for another room',
    );
    t.equal(sockets.count, 3);
    await own.close();
  });
});
