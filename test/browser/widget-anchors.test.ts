import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { servePage } from '../helpers/own-page.ts';
import { api, comment, field, live, openPage, pin, popover } from '../helpers/widget-page.ts';

const table = `<style>td { padding: 20px 80px }</style><table><tbody>
  <tr><td>Order 1001</td></tr><tr><td>Order 1002</td></tr><tr><td>Order 1003</td></tr></tbody></table><div style="height: 1000px"></div>`;

/** Adds a picture to a `transfer` of the page. */
const picture = (name: string): string =>
  `transfer.items.add(new File([Uint8Array.from(atob('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC'), (letter) => letter.charCodeAt(0))], '${name}', { type: 'image/png' }));`;

t.test('what the widget shows beside the page', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  await api(cluster, 'PUT', '/users/maria', { name: 'Maria' });
  const context = await (
    await openBrowser(t)
  ).newContext({ viewport: { width: 1200, height: 900 }, reducedMotion: 'no-preference' });
  const page = await openPage(t, context, await servePage(t, cluster, table));
  await live(page);
  /** Waits until an expression is true in the page, in which `root` is the shadow root of the widget. */
  const holds = (expression: string): Promise<void> =>
    until(() =>
      page.evaluate<boolean>(
        `(() => { const { shadowRoot: root } = document.querySelector('collab-comments'); return ${expression}; })()`,
      ),
    );
  /** The text of the cell under the pin. */
  const under = `(() => {
    const box = root.querySelector('.pin')?.getBoundingClientRect();
    const cell = [...document.querySelectorAll('td')].find((each) => {
      const { left, right, top, bottom } = each.getBoundingClientRect();
      return box !== undefined && box.left >= left && box.left <= right && box.bottom >= top && box.bottom <= bottom;
    });
    return cell?.textContent;
  })()`;

  await t.test(
    'a pin stays on its row when one is inserted before it, and when its text is edited a little',
    async () => {
      await comment(page, 'tr:nth-child(2) td', 'Is this paid?');
      await page.keyboard.press('Escape');
      await holds(`${under} === 'Order 1002'`);
      await page.evaluate(
        `document.querySelector('tbody').insertAdjacentHTML('afterbegin', '<tr><td>Order 1000</td></tr>')`,
      );
      await holds(`document.querySelectorAll('tr').length === 4 && ${under} === 'Order 1002'`);
      await page.goto(await servePage(t, cluster, table.replace('Order 1002', 'Order 1002 ok')));
      await live(page);
      await holds(`${under} === 'Order 1002 ok'`);
    },
  );

  await t.test('a pin stays on a text that is rendered again as another kind of element', async () => {
    const own = await openPage(
      t,
      context,
      await servePage(t, cluster, '<main><p style="padding: 90px">Shipping takes three days</p></main>'),
    );
    await live(own);
    await comment(own, 'p', 'Still true?');
    await own.evaluate(
      `document.querySelector('main').innerHTML = '<h2>Plans</h2><div data-moved style="margin: 80px">Shipping takes three days</div>'`,
    );
    await until(() =>
      own.evaluate<boolean>(`(() => {
      const mark = document.querySelector('collab-comments').shadowRoot.querySelector('.pin')?.getBoundingClientRect();
      const { left, right, top, bottom } = document.querySelector('[data-moved]').getBoundingClientRect();
      return mark !== undefined && mark.left >= left && mark.left <= right && mark.bottom >= top && mark.bottom <= bottom;
    })()`),
    );
    await own.close();
  });

  await t.test(
    'a pin is shown only while what scrolls shows its place, and its thread stays open and is found by the panel',
    async (t) => {
      const lines = Array.from({ length: 20 }, (_, line) => `<p>Line number ${line}</p>`).join('');
      const own = await openPage(
        t,
        context,
        await servePage(
          t,
          cluster,
          `<style>.scrolls { overflow: auto } .box { width: 400px; height: 200px; margin: 200px } .box p { height: 60px; margin: 0 }</style>
      <div class="box">${lines}</div>`,
        ),
      );
      await live(own);
      const scrollTo = (top: number): Promise<void> =>
        own.evaluate(`document.querySelector('.box').scrollTop = ${top}`);
      const mark = pin(own, 'Which line');
      /** Waits until the pin is in the box that scrolls. */
      const inBox = (): Promise<void> =>
        until(() =>
          own.evaluate<boolean>(`(() => {
      const box = document.querySelector('.box').getBoundingClientRect();
      const pin = document.querySelector('collab-comments').shadowRoot.querySelector('.pin.open')?.getBoundingClientRect();
      return pin !== undefined && pin.bottom >= box.top && pin.bottom <= box.bottom;
    })()`),
        );
      await comment(own, '.box p:nth-child(6)', 'Which line?');
      await own.keyboard.press('Escape');
      await own.evaluate(`document.querySelector('.box').classList.add('scrolls')`);
      await t.resolves(mark.waitFor({ state: 'detached' }), 'its box begins to scroll');
      await scrollTo(200);
      await mark.click();
      await field(own).waitFor();
      for (const top of [0, 800]) {
        await scrollTo(top);
        await mark.waitFor({ state: 'detached' });
        t.equal(await field(own).isVisible(), true, 'its thread stays open');
        await scrollTo(200);
        await inBox();
      }
      await own.getByRole('button', { name: /Show comments/ }).click();
      const listed = own.locator('collab-comments .panel .item-main', { hasText: 'Which line?' });
      await scrollTo(0);
      await mark.waitFor({ state: 'detached' });
      await listed.click();
      await t.resolves(inBox(), 'the panel scrolls to that of the open thread');
      await popover(own).getByRole('button', { name: 'Close' }).click();
      await scrollTo(800);
      await mark.waitFor({ state: 'detached' });
      await listed.click();
      await t.resolves(inBox(), 'and to that of another');
      await own.close();
    },
  );

  await t.test(
    'the list of people is within the window at its top and its bottom, and the keyboard chooses from it',
    async (t) => {
      const within = `(() => {
      const list = root.querySelector('.mention-list')?.getBoundingClientRect();
      const form = root.querySelector('.composer').getBoundingClientRect();
      return list !== undefined && list.top >= 0 && list.bottom <= innerHeight && list.left === form.left && (list.bottom <= form.top || list.top >= form.bottom);
    })()`;
      await page.setViewportSize({ width: 1200, height: 900 });
      for (const [y, name] of [
        [5, 'the top'],
        [880, 'the bottom'],
      ] as const) {
        await page.getByRole('button', { name: 'Add a comment' }).click();
        await page.getByRole('application').waitFor();
        await page.mouse.click(600, y);
        const area = page.getByLabel('Add a comment…');
        await area.pressSequentially('@Mar');
        await page.getByRole('option', { name: 'Maria' }).waitFor();
        await holds(within);
        t.equal(
          await page.evaluate(`document.querySelector('collab-comments').shadowRoot.activeElement.localName`),
          'textarea',
          `the field keeps the focus at ${name}`,
        );
        const controls = await area.getAttribute('aria-controls');
        t.equal(await page.getByRole('listbox').getAttribute('id'), controls);
        await page.keyboard.press('Enter');
        t.equal(await area.inputValue(), '@Maria ');
        await page.getByRole('listbox').waitFor({ state: 'detached' });
        await area.fill('');
        await page.keyboard.press('Escape');
      }
    },
  );

  await t.test(
    'an @ alone lists the others before any of them wrote in the room, and says so if there are none',
    async (t) => {
      const alone = await openPage(t, context, await servePage(t, cluster, '<h1>Alone</h1>'));
      const area = alone.getByLabel('Add a comment…');
      const write = async (): Promise<void> => {
        await alone.evaluate(`document.querySelector('collab-comments').room = 'alone'`);
        await live(alone);
        await alone.getByRole('button', { name: 'Add a comment' }).click();
        await alone.getByRole('application').click({ position: { x: 600, y: 300 } });
        await area.fill('');
        await area.pressSequentially('@');
      };
      await write();
      await alone.getByRole('option').first().waitFor();
      t.same(await alone.locator('[role=option] bdi').allInnerTexts(), ['Bob', 'CI', 'Maria']);
      await area.fill('');
      await alone.getByRole('listbox').waitFor({ state: 'detached' });
      for (const user of ['bob', 'ci-bot', 'maria']) await api(cluster, 'DELETE', `/users/${user}`);
      await alone.reload();
      await write();
      await alone.getByText('No matches').waitFor();
      await area.press('Escape');
      await alone.getByText('No matches').waitFor({ state: 'detached' });
      t.equal(await area.inputValue(), '@', 'Escape closes that alone');
      await alone.close();
      await api(cluster, 'PUT', '/users/maria', { name: 'Maria' });
    },
  );

  await t.test('a file that is dropped beside the field of the thread is attached, and the page stays', async (t) => {
    await pin(page, 'Is this paid').click();
    await field(page).waitFor();
    /** Dispatches an event of dragging a file; whether the page refused the default. */
    const drag = (kind: string, selector: string): Promise<boolean> =>
      page.evaluate(`(() => {
      const transfer = new DataTransfer();
      ${picture('beside.png')}
      const target = document.querySelector('collab-comments').shadowRoot.querySelector('.popover ${selector}');
      return !target.dispatchEvent(new DragEvent('${kind}', { dataTransfer: transfer, bubbles: true, cancelable: true, composed: true }));
    })()`);
    const dropping = popover(page).locator('.composer.dropping');
    for (const selector of ['h2', '.comments', 'textarea']) {
      t.equal(await drag('dragover', selector), true, selector);
      t.equal(await dropping.count(), 1);
      await drag('dragleave', selector);
      t.equal(await dropping.count(), 0);
    }
    t.equal(await drag('drop', 'h2'), true);
    await popover(page).getByText('beside.png').waitFor();
    t.equal(await drag('drop', 'textarea'), true);
    t.equal(await popover(page).locator('.upload').count(), 2, 'each is taken once');
  });

  await t.test(
    'a file that is dropped on the panel goes to the open field; without one the page stays and a message says where to',
    async (t) => {
      /**
       * Drags a file over an element of the widget and drops it there; whether the page refused the default of both.
       */
      const drop = (selector: string, name: string): Promise<[boolean, boolean]> =>
        page.evaluate(`(() => {
      const transfer = new DataTransfer();
      ${picture(name)}
      const target = document.querySelector('collab-comments').shadowRoot.querySelector('${selector}');
      return ['dragover', 'drop'].map((kind) => !target.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true, composed: true })));
    })()`);
      const refused = page.locator('.toast', { hasText: 'Drop files on an open thread or a new comment.' });
      await popover(page).waitFor();
      await page.getByRole('button', { name: /Show comments/ }).click();
      for (const selector of ['.panel .list', '.panel input', '.panel h2']) {
        const name = `${selector.slice(7)}.png`;
        t.same(await drop(selector, name), [true, true], selector);
        await popover(page).getByText(name).waitFor();
      }
      t.equal(await page.locator('collab-comments .composer.dropping').count(), 0);
      t.equal(await refused.count(), 0);
      await popover(page).getByRole('button', { name: 'Close' }).click();
      t.same(await drop('.panel .list', 'none.png'), [true, true]);
      await refused.waitFor();
      await refused.getByRole('button', { name: 'Dismiss' }).click();

      const position = { x: 0.5, y: 0.5 };
      for (const body of ['One', 'Two'])
        await api(cluster, 'POST', '/rooms/own/threads', { userId: 'maria', body, position });
      await page.getByRole('button', { name: '2 threads here' }).click();
      t.same(await drop('.cluster-list .list', 'cluster.png'), [true, true]);
      await refused.waitFor();
      t.same(await drop('.toast', 'toast.png'), [true, true]);
      t.same(
        await page.evaluate(`(() => {
      const transfer = new DataTransfer();
      transfer.setData('text/plain', 'words');
      return document.querySelector('collab-comments').shadowRoot.querySelector('.panel input').dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true, composed: true }));
    })()`),
        true,
        'text is left to the browser',
      );
    },
  );
});
