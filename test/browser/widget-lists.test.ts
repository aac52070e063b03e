import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { servePage } from '../helpers/own-page.ts';
import { api, comment, live, openPage, pin } from '../helpers/widget-page.ts';

type Rows = readonly string[];

/** The kinds of lists, each as a function of the browser that renders the named products. */
const lists: Readonly<Record<string, { readonly render: string; readonly target: string }>> = {
  'rows with the name before': {
    render:
      'main.innerHTML = `<ul>${rows.map((name) => `<li data-row="${name}"><h3>${name}</h3><p>In stock, €49</p><div><button>Details</button> <button class="buy">Buy</button></div></li>`).join("")}</ul>`',
    target: '[data-row="Kettle"] .buy',
  },
  'rows with the name behind': {
    render:
      'main.innerHTML = `<ul>${rows.map((name) => `<li data-row="${name}"><button class="buy">Buy</button><p>${name}, €49</p></li>`).join("")}</ul>`',
    target: '[data-row="Kettle"] .buy',
  },
  'a list without elements around its rows': {
    render:
      'main.innerHTML = `<dl>${rows.map((name) => `<dt>${name} €49</dt><dd data-row="${name}">Buy</dd>`).join("")}</dl>`',
    target: '[data-row="Kettle"]',
  },
};

const start: Rows = ['Coffee grinder', 'Kettle', 'Tea pot', 'Whisk'];
const changes: Readonly<Record<string, Rows>> = {
  'rows are inserted before it': ['Spoon', 'Cup', ...start],
  'a row is removed before it': start.slice(1),
  'rows are reordered': ['Whisk', 'Tea pot', 'Coffee grinder', 'Kettle'],
  'it changes places with its neighbour': ['Kettle', 'Coffee grinder', 'Tea pot', 'Whisk'],
  'all others are exchanged': ['Spoon', 'Cup', 'Kettle', 'Plate'],
};

t.test('pins in lists whose rows have the same text', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const context = await (await openBrowser(t)).newContext({ viewport: { width: 1200, height: 900 } });
  const page = await openPage(
    t,
    context,
    await servePage(
      t,
      cluster,
      '<style>dd, button { margin: 4px; padding: 10px 120px } li { margin: 24px }</style><main></main>',
    ),
  );
  await live(page);

  /** Shows other rows in the page, as a framework without keys would: every element is new. */
  const show = (render: string, rows: Rows): Promise<void> =>
    page.evaluate(
      `(() => { const main = document.querySelector('main'); const rows = ${JSON.stringify(rows)}; ${render}; })()`,
    );
  /** Waits until the only pin is on the button of a row; null waits until there is none. */
  const pinned = (target: Page, row: string | null): Promise<void> =>
    until(() =>
      target.evaluate<boolean>(`(() => {
      const mark = document.querySelector('collab-comments').shadowRoot.querySelector('.pin')?.getBoundingClientRect();
      const found = mark === undefined ? null : [...document.querySelectorAll('.buy, dd')].find((each) => {
        const { left, right, top, bottom } = each.getBoundingClientRect();
        return mark.left >= left && mark.left <= right && mark.bottom >= top && mark.bottom <= bottom;
      })?.closest('[data-row]').dataset.row ?? '';
      return found === ${JSON.stringify(row)};
    })()`),
    );
  /** The position of the only thread, once the server has it. */
  const position = async (): Promise<Record<string, unknown>> => {
    let found: Record<string, unknown> | undefined;
    await until(async () => {
      const { items } = (await (await api(cluster, 'GET', '/rooms/own/threads')).json()) as {
        items: { position: Record<string, unknown> }[];
      };
      found = items[0]?.position;
      return found !== undefined;
    });
    return found ?? {};
  };
  const clear = async (): Promise<void> => {
    await position();
    const { items } = (await (await api(cluster, 'GET', '/rooms/own/threads')).json()) as { items: { id: string }[] };
    for (const { id } of items) await api(cluster, 'DELETE', `/threads/${id}`);
    await page.locator('collab-comments .pin').waitFor({ state: 'detached' });
  };

  for (const [kind, { render, target }] of Object.entries(lists)) {
    await t.test(`${kind} | a pin stays on its row, and is detached when that is gone`, async (t) => {
      await show(render, start);
      await comment(page, target, 'Too small?');
      await page.keyboard.press('Escape');
      await pinned(page, 'Kettle');
      for (const [change, rows] of Object.entries(changes)) {
        await show(render, rows);
        await t.resolves(pinned(page, 'Kettle'), change);
      }
      await show(render.replaceAll('€49', '€54'), ['Spoon', ...start]);
      await t.resolves(pinned(page, 'Kettle'), 'another price');
      await show(
        render,
        start.filter((name) => name !== 'Kettle'),
      );
      await t.resolves(pinned(page, null), 'its row is removed');
      await show(render, start);
      await t.resolves(pinned(page, 'Kettle'), 'its row is back');
      await clear();
    });
  }

  await t.test('a pin that was stored without context is where its selector leads', async () => {
    const { render, target } = lists['rows with the name before'] ?? { render: '', target: '' };
    await show(render, start);
    await comment(page, target, 'From before');
    const { quotePrefix, quoteSuffix, fingerprint, ...old } = await position();
    t.ok(fingerprint, 'the widget stores what tells the element from others');
    t.match([quotePrefix, quoteSuffix], ['Kettle In stock, €49 Details', undefined], 'the context ends with the row');
    await clear();
    await api(cluster, 'POST', '/rooms/own/threads', { userId: 'ann', body: 'From before', position: old });
    await pin(page, 'From before').waitFor();
    await pinned(page, 'Kettle');
    await show(render, [...start, 'Spoon']);
    await pinned(page, 'Kettle');
    await show(render, start.slice(1));
    await pinned(page, 'Tea pot');
    await clear();
  });

  for (const [kind, names] of Object.entries({
    'rows with names': ['Coffee grinder', 'Kettle', 'Tea pot', 'Whisk'],
    'rows that differ in a number alone': ['Order 1001', 'Order 1002', 'Order 1003', 'Order 1004'],
  })) {
    await t.test(`${kind} | a pin stays in its row when labels change, and is never in another`, async (t) => {
      const render = `main.innerHTML = '<table>' + rows.map(([name, label]) => '<tr data-row="' + name + '"><td>' + name + '</td><td>In stock, ships in three days</td><td><button class="buy">' + label + '</button></td></tr>').join('') + '</table>'`;
      /** Shows rows with their labels, `Buy` where none is named. */
      const label = (rows: Rows, labels: Readonly<Record<string, string>> = {}): Promise<void> =>
        page.evaluate(`(async () => {
          const main = document.querySelector('main');
          const rows = ${JSON.stringify(rows.map((name) => [name, labels[name] ?? 'Buy']))};
          ${render};
          // Until the elements have been searched again, no pin would prove nothing.
          await new Promise((resolve) => setTimeout(resolve, 400));
        })()`);
      const all = (text: string): Record<string, string> => Object.fromEntries(names.map((name) => [name, text]));
      const [first = '', second = '', third = '', fourth = ''] = names;
      const reordered = [fourth, third, first, second];
      await label(names);
      await comment(page, `[data-row="${third}"] .buy`, 'Too small?');
      await page.keyboard.press('Escape');
      await pinned(page, third);
      for (const text of ['Buy now', 'Sold out', '5']) {
        await label(names, { [third]: text });
        await t.resolves(pinned(page, third), `its label is ${text}`);
        await label(names, all(text));
        await t.resolves(pinned(page, third), `all labels are ${text}`);
        await label([second, third], { [third]: text });
        await t.resolves(pinned(page, third), `its label is ${text}, and one row has the old one`);
        await label(reordered, { [third]: text });
        await t.resolves(pinned(page, third), `its label is ${text}, in another order`);
        await label(reordered, all(text));
        await t.resolves(pinned(page, third), `all labels are ${text}, in another order`);
        await label([first, second, fourth], all(text));
        await t.resolves(pinned(page, null), `its row is removed when all labels are ${text}`);
      }
      await label(
        names.map((name) => (name === third ? 'Toaster' : name)),
        { Toaster: 'Sold out' },
      );
      await t.resolves(pinned(page, null), 'another product is in its place');
      await label(names);
      await t.resolves(pinned(page, third), 'its row is back');
      await page.evaluate(
        `for (const each of document.querySelectorAll('.buy')) each.insertAdjacentHTML('beforebegin', '<button>Compare with others</button>')`,
      );
      await page.evaluate(`new Promise((resolve) => setTimeout(resolve, 400))`);
      t.not(
        await page.evaluate(`(() => {
        const mark = document.querySelector('collab-comments').shadowRoot.querySelector('.pin')?.getBoundingClientRect();
        return mark === undefined ? null : document.elementsFromPoint(mark.left + 1, mark.bottom - 1).find(({ localName }) => localName === 'button')?.textContent;
      })()`),
        'Compare with others',
        'it is not on a button that was inserted before its own',
      );
      await clear();
    });
  }

  await t.test('a pin is not in the only row that is left, if that is another one', async () => {
    const show = (names: readonly string[]): Promise<void> =>
      page.evaluate(
        `document.querySelector('main').innerHTML = ${JSON.stringify(names)}.map((name) => '<div data-row="' + name + '">' + name + ' <button class="buy">Buy</button></div>').join('')`,
      );
    await show(['Red shirt', 'Blue socks', 'Green hat']);
    await comment(page, '[data-row="Green hat"] .buy', 'Other colours?');
    await page.keyboard.press('Escape');
    await pinned(page, 'Green hat');
    await show(['Red shirt']);
    await pinned(page, null);
    await show(['Red shirt', 'Blue socks', 'Green hat']);
    await pinned(page, 'Green hat');
    await clear();
  });

  await t.test('a row whose label and price change at once keeps its pin', async () => {
    const show = (price: string, label: string): Promise<void> =>
      page.evaluate(
        `document.querySelector('main').innerHTML = ['Kettle', 'Tea pot', 'Whisk'].map((name) => '<div data-row="' + name + '">' + name + ', ${price} <button class="buy">${label}</button></div>').join('')`,
      );
    await show('€49', 'Buy');
    await comment(page, '[data-row="Tea pot"] .buy', 'Cheaper?');
    await show('€154', 'Order');
    await pinned(page, 'Tea pot');
    await clear();
  });

  await t.test('a number that changes beside a text that is there twice does not detach its pin', async () => {
    await page.evaluate(
      `document.querySelector('main').innerHTML = '<div data-row="A"><dd>Total</dd><b>123</b></div><div data-row="B"><dd>Total</dd><b>456</b></div>'`,
    );
    await comment(page, '[data-row=B] dd', 'Since when?');
    await page.evaluate(
      `for (const [index, each] of document.querySelectorAll('b').entries()) each.textContent = String(9087 + 1111 * index)`,
    );
    await pinned(page, 'B');
    await clear();
  });
});
