import type { Page } from 'playwright-core';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { api, field, live, openDemo, pin, popover } from '../helpers/widget-page.ts';

const HEBREW = 'דנה כהן';
/** Texts of a language from right to left, as a page sets them. */
const strings = {
  typingOne: '{name} מקליד…',
  thread: 'שרשור מאת {name}.',
  resolvedBy: 'נפתר על ידי {name}',
  errorTooMany: 'לכל היותר {count} קבצים.',
  errorType: 'לא ניתן לצרף את {name}.',
  online: 'מחובר: {names}',
};

t.test('names in sentences that run in the other direction', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const browser = await openBrowser(t);
  const viewport = { width: 1200, height: 900 };
  const bob = await openDemo(t, await browser.newContext({ viewport }), cluster, 'bob');
  const ann = await openDemo(t, await browser.newContext({ viewport }), cluster, 'ann');

  /**
   * Waits until pieces of one text of the widget stand in this order, from left to right; the order at last, if not.
   */
  async function order(page: Page, selector: string, pieces: readonly string[]): Promise<readonly string[]> {
    let found: readonly string[] = [];
    const read = `(() => {
      const element = document.querySelector('collab-comments').shadowRoot.querySelector('${selector}');
      const walker = document.createTreeWalker(element ?? document.createElement('p'), NodeFilter.SHOW_TEXT);
      const lefts = new Map();
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        for (const piece of ${JSON.stringify(pieces)}) {
          const at = node.data.indexOf(piece);
          if (at < 0) continue;
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, at + piece.length);
          lefts.set(piece, range.getBoundingClientRect().left);
        }
      }
      return [...lefts].toSorted((one, other) => one[1] - other[1]).map(([piece]) => piece);
    })()`;
    await until(async () => (found = await page.evaluate<string[]>(read)).join() === pieces.join(), 30_000).catch(
      () => undefined,
    );
    return found;
  }

  for (const { page: dir, name, texts, typing, title, refused, resolved } of [
    {
      page: 'rtl',
      name: HEBREW,
      texts: {},
      typing: [HEBREW, 'is typing', '…'],
      title: ['Thread by', HEBREW],
      refused: ['תמונה', 'cannot be attached', '.'],
      resolved: ['Resolved by', HEBREW],
    },
    {
      page: 'rtl',
      name: 'Bob',
      texts: {},
      typing: ['Bob', 'is typing', '…'],
      title: ['Thread by', 'Bob'],
      refused: ['תמונה', 'cannot be attached', '.'],
      resolved: ['Resolved by', 'Bob'],
    },
    {
      page: 'ltr',
      name: HEBREW,
      texts: {},
      typing: [HEBREW, 'is typing', '…'],
      title: ['Thread by', HEBREW],
      refused: ['תמונה', 'cannot be attached', '.'],
      resolved: ['Resolved by', HEBREW],
    },
    {
      page: 'ltr',
      name: 'Bob',
      texts: strings,
      typing: ['…', 'מקליד', 'Bob'],
      title: ['.', 'Bob', 'שרשור מאת'],
      refused: ['.', 'תמונה', 'לא ניתן לצרף'],
      resolved: ['Bob', 'נפתר על ידי'],
    },
  ] as const) {
    await t.test(`${name} on a page ${dir}, with ${texts === strings ? 'Hebrew' : 'English'} texts`, async (t) => {
      await api(cluster, 'PUT', '/users/bob', { name });
      const { thread } = (await (
        await api(cluster, 'POST', '/rooms/demo/threads', {
          userId: 'bob',
          body: `On ${dir}`,
          position: { x: 0.5, y: 0.2 },
        })
      ).json()) as { thread: { id: string } };
      await ann.reload();
      await live(ann);
      await ann.evaluate(
        `document.documentElement.dir = '${dir}'; Object.assign(document.querySelector('collab-comments'), { strings: ${JSON.stringify(texts)} })`,
      );
      await live(ann);
      await pin(ann, `On ${dir}`).waitFor();
      await ann.evaluate(`document.querySelector('collab-comments').openThread('${thread.id}')`);
      t.same(await order(ann, '.popover h2', title), title, 'the title');
      await pin(bob, `On ${dir}`).click();
      t.equal(
        await ann.evaluate(
          `getComputedStyle(document.querySelector('collab-comments').shadowRoot.querySelector('.popover textarea')).direction`,
        ),
        dir,
        'the placeholder of an empty field',
      );
      await field(bob).pressSequentially('Hm');
      // Who has typed nothing for 5 s does not type.
      await until(async () => {
        await field(bob).press('m');
        return (await ann.locator('.typing').count()) > 0;
      });
      t.same(await order(ann, '.typing', typing), typing, 'who is typing');
      await field(bob).fill('');
      await popover(ann)
        .locator('input[type=file]')
        .setInputFiles({ name: 'תמונה', mimeType: 'text/plain', buffer: Buffer.from('x') });
      t.same(await order(ann, '.toast p', refused), refused, 'the message');
      await popover(bob).getByRole('button', { name: 'Resolve' }).click();
      t.same(await order(ann, '.popover .tag', resolved), resolved, 'who resolved it');
      await api(cluster, 'DELETE', `/threads/${thread.id}`);
    });
  }

  await t.test('a long name from right to left is cut at its end', async (t) => {
    const long = `${'محمد '.repeat(14)}الأخير`;
    await api(cluster, 'PUT', '/users/bob', { name: long });
    const { thread } = (await (
      await api(cluster, 'POST', '/rooms/demo/threads', {
        userId: 'bob',
        body: 'By a long name',
        position: { x: 0.5, y: 0.2 },
      })
    ).json()) as { thread: { id: string } };
    await pin(bob, 'By a long name').click();
    await popover(bob).getByRole('button', { name: 'Resolve' }).click();
    await ann.reload();
    await live(ann);
    await ann.evaluate(`document.querySelector('collab-comments').togglePanel(true)`);
    await ann.locator('.panel').getByRole('radio', { name: 'Resolved' }).click();
    await ann.locator('.panel .item', { hasText: 'By a long name' }).click();
    await popover(ann).getByText('By a long name').waitFor();
    const seen = (selector: string): Promise<readonly boolean[]> =>
      ann.evaluate(`(() => {
        const element = document.querySelector('collab-comments').shadowRoot.querySelector('${selector}');
        const box = element.getBoundingClientRect();
        const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
        while (!walker.nextNode().data.includes('محمد'));
        const at = walker.currentNode.data.indexOf('محمد');
        return [at, walker.currentNode.data.lastIndexOf('الأخير')].map((start) => {
          const range = document.createRange();
          range.setStart(walker.currentNode, start);
          range.setEnd(walker.currentNode, start + 1);
          const { left, right } = range.getBoundingClientRect();
          return left >= box.left - 1 && right <= box.right + 1;
        });
      })()`);
    for (const selector of ['.popover h2 .named', '.popover .tag .named', '.comment .name'])
      t.same(await seen(selector), [true, false], `the beginning is seen, and not the end: ${selector}`);
    await api(cluster, 'DELETE', `/threads/${thread.id}`);
  });

  await t.test('the buttons of a comment cover none of its text', async (t) => {
    await api(cluster, 'PUT', '/users/bob', { name: 'Bob with a name that is longer than its line' });
    for (const body of [
      'These words fill some lines of the comment. '.repeat(4),
      'המילים האלה ממלאות כמה שורות של התגובה. '.repeat(4),
    ]) {
      const { thread } = (await (
        await api(cluster, 'POST', '/rooms/demo/threads', { userId: 'bob', body, position: { x: 0.5, y: 0.2 } })
      ).json()) as { thread: { id: string } };
      await ann.setViewportSize(viewport);
      await ann.reload();
      await live(ann);
      await pin(ann, body.slice(0, 12)).waitFor();
      await ann.evaluate(`document.querySelector('collab-comments').openThread('${thread.id}')`);
      for (const [dir, width] of [
        ['ltr', 1200],
        ['rtl', 1200],
        ['rtl', 375],
      ] as const) {
        await ann.setViewportSize({ width, height: 700 });
        await ann.evaluate(
          `document.documentElement.dir = '${dir}'; document.querySelector('collab-comments').requestUpdate()`,
        );
        await ann.locator(`collab-comments .root[dir=${dir}]`).waitFor({ state: 'attached' });
        await popover(ann).locator('.comment').hover();
        const covered = `(() => {
          const root = document.querySelector('collab-comments').shadowRoot;
          const bar = root.querySelector('.comment .actions').getBoundingClientRect();
          return ['.name', 'time', '.body'].filter((name) => {
            const { left, right, top, bottom } = root.querySelector('.comment ' + name).getBoundingClientRect();
            return left < bar.right && right > bar.left && top < bar.bottom && bottom > bar.top;
          });
        })()`;
        t.same(await ann.evaluate(covered), [], `${dir} ${width}: ${body.slice(0, 12)}`);
      }
      await api(cluster, 'DELETE', `/threads/${thread.id}`);
    }
  });
});
