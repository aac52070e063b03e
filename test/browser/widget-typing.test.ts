import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { servePage } from '../helpers/own-page.ts';
import { api, comment, commentMenu, field, live, openPage, popover } from '../helpers/widget-page.ts';

// A page with shortcuts, as they are bound everywhere: on the document, for all but fields that the page can see.
const SHORTCUTS = `<main><h1 id="title">Orders</h1><script>
  globalThis.taken = [];
  const isField = (target) => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
  for (const kind of ['keydown', 'keypress', 'keyup', 'beforeinput', 'copy', 'cut', 'paste']) {
    document.addEventListener(kind, (event) => {
      if (isField(event.target)) return;
      taken.push(kind + ' ' + (event.key ?? ''));
      event.preventDefault();
    });
  }
</script></main>`;

const ROOT = "document.querySelector('collab-comments').shadowRoot";
const AREA = `${ROOT}.querySelector('.popover .composer textarea')`;

t.test('what is typed in the widget', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  await api(cluster, 'PUT', '/users/max', { name: 'Max' });
  const context = await (await openBrowser(t)).newContext();
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  // The pictures that are pasted are none.
  const page = await openPage(t, context, await servePage(t, cluster, SHORTCUTS), /status of 400/);
  await live(page);
  await comment(page, '#title', 'First');
  await popover(page).getByText('First').waitFor();
  const text = (): Promise<string> => field(page).inputValue();
  const taken = (): Promise<string[]> => page.evaluate<string[]>('taken.splice(0)');
  await taken();

  await t.test('does not reach the shortcuts of the page', async (t) => {
    await field(page).click();
    await page.keyboard.type('jk/? e');
    await page.keyboard.press('Control+A');
    await page.keyboard.press('Control+C');
    await page.keyboard.press('End');
    await page.keyboard.press('Control+V');
    t.equal(await text(), 'jk/? ejk/? e');
    t.strictSame(await taken(), []);
    await page.locator('collab-comments .toolbar button').first().focus();
    await page.keyboard.press('j');
    t.ok((await taken()).includes('keydown j'), 'what is not typed stays a shortcut');
    await field(page).fill('');
  });

  await t.test('is taken back step by step, also after a mention was chosen', async (t) => {
    await field(page).click();
    await page.keyboard.type('Ask @Ma');
    await popover(page).getByRole('option', { name: 'Max' }).waitFor();
    await page.keyboard.press('Enter');
    await until(async () => (await text()) === 'Ask @Max ');
    await page.keyboard.press('Control+Z');
    t.equal(await text(), 'Ask @Ma');
    await field(page).fill('');
  });

  await t.test('offers emoji behind a colon, and replaces shortcodes', async (t) => {
    await field(page).click();
    await page.keyboard.type('At 10:30 :tad');
    await popover(page).getByRole('option', { name: ':tada:' }).waitFor();
    await page.keyboard.press('Enter');
    t.equal(await text(), 'At 10:30 🎉');
    await page.keyboard.type(' and :heart:');
    await until(async () => (await text()) === 'At 10:30 🎉 and ❤️');
    await page.keyboard.press('Control+Z');
    t.equal(await text(), 'At 10:30 🎉 and :heart:', 'what was typed comes back');
    await field(page).fill('');
  });

  await t.test('has its shortcodes replaced when it is sent, also those that were pasted', async (t) => {
    await field(page).fill(':wave: and :heart:, (:tada:) at 10:30:45 of :no_such_emoji: in `:tada:`');
    await field(page).press('Enter');
    const sent = '👋 and ❤️, (🎉) at 10:30:45 of :no_such_emoji: in `:tada:`';
    await popover(page)
      .locator('.comment:not(.pending)', { hasText: /^.*👋 and ❤️, \(🎉\) at 10:30:45/s })
      .waitFor();
    const { threads } = (await (await api(cluster, 'GET', '/rooms/own?include=comments')).json()) as {
      threads: { comments: { body: string }[] }[];
    };
    t.ok(threads.flatMap(({ comments }) => comments).some(({ body }) => body === sent));
  });

  await t.test('finds any emoji as a reaction, by name, in a skin tone, and by the keyboard', async (t) => {
    await field(page).fill('For reactions');
    await field(page).press('Enter');
    const comment = popover(page).locator('.comment:not(.pending)', { hasText: 'For reactions' });
    await comment.waitFor();
    const react = async (query: string, ...keys: string[]): Promise<void> => {
      await comment.hover();
      await comment.getByRole('button', { name: 'Add a reaction' }).click();
      await popover(page).getByRole('button', { name: 'More emoji' }).click();
      await popover(page).getByLabel('Search emoji').fill(query);
      for (const key of keys) await page.keyboard.press(key);
    };
    await taken();
    await react('avocado', 'Enter');
    await comment.getByRole('button', { name: /^🥑 1: / }).waitFor();
    await react('👩🏽‍🚀', 'Enter');
    await comment.getByRole('button', { name: /^👩🏽‍🚀 1: / }).waitFor();
    await react('waving hand');
    await popover(page).getByRole('button', { name: 'Skin tone' }).click();
    await popover(page).getByRole('button', { name: '👋🏻 wave' }).click();
    await comment.getByRole('button', { name: /^👋🏻 1: / }).waitFor();
    t.same(
      (await taken()).filter((name) => /^(keydown|beforeinput)/.test(name)),
      [],
      'the page hears nothing of it',
    );
    await react('rocket', 'ArrowDown');
    t.match(
      await page.evaluate(
        "document.querySelector('collab-comments').shadowRoot.activeElement.getAttribute('aria-label')",
      ),
      /^🚀 /,
    );
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Escape');
    t.equal(await popover(page).locator('.all-emojis').count(), 0);
    t.ok(await popover(page).isVisible(), 'Escape closes the emoji alone');
  });

  await t.test('is not sent by the Enter that confirms a word of an input method', async (t) => {
    await field(page).fill('日本');
    const prevented = await page.evaluate<boolean>(
      `!${AREA}.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true, composed: true }))`,
    );
    t.equal(prevented, false);
    t.equal(await text(), '日本');
    await field(page).fill('');
  });

  await t.test('is pasted as text where a picture of it comes too, and as a file where there is no text', async (t) => {
    const paste = (types: Readonly<Record<string, string>>): Promise<boolean> =>
      page.evaluate<boolean>(`(() => {
        const clipboardData = new DataTransfer();
        for (const [type, content] of Object.entries(${JSON.stringify(types)})) clipboardData.setData(type, content);
        clipboardData.items.add(new File([new Uint8Array(8)], 'picture.png', { type: 'image/png' }));
        return !${AREA}.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true, composed: true }));
      })()`);
    t.equal(
      await paste({ 'text/plain': 'A\tB', 'text/html': '<table><tr><td>A<td>B</table>' }),
      false,
      'cells are left to the browser',
    );
    t.equal(await popover(page).locator('.upload').count(), 0);
    t.equal(await paste({ 'text/plain': 'picture.png' }), true, 'a file that was copied');
    t.equal(await paste({ 'text/html': '<img src="https://example.com/picture.png">' }), true, 'a picture of a page');
    t.equal(await paste({}), true, 'a screenshot');
    // They are no pictures, so they are refused. Nothing can be sent before.
    await until(async () => (await popover(page).locator('.upload').count()) === 0);
  });

  await t.test(
    'of two people with one name, notifies the one who was chosen, also after clearing and choosing again',
    async (t) => {
      await api(cluster, 'PUT', '/users/max-of-sales', { name: 'Max' });
      const choose = async (id: string): Promise<void> => {
        await page.keyboard.type('@Max');
        await popover(page)
          .getByRole('option', { name: new RegExp(`^Max ${id}$`) })
          .click();
        await until(async () => (await text()).endsWith('@Max '));
      };
      await field(page).fill('');
      await field(page).click();
      await choose('max-of-sales');
      await field(page).fill('');
      await choose('max');
      await page.keyboard.type('please');
      await page.keyboard.press('Enter');
      await popover(page).locator('.comment:not(.pending)', { hasText: '@Max please' }).waitFor();
      const { threads } = (await (await api(cluster, 'GET', '/rooms/own?include=comments')).json()) as {
        threads: { comments: { body: string; mentions: string[] }[] }[];
      };
      t.strictSame(threads.flatMap(({ comments }) => comments).find(({ body }) => body === '@Max please')?.mentions, [
        'max',
      ]);
    },
  );

  await t.test('an edit that meets a newer text says so and keeps both', async (t) => {
    await field(page).fill('As it was');
    await field(page).press('Enter');
    const comment = popover(page).locator('.comment:not(.pending)', { hasText: 'As it was' });
    await comment.waitFor();
    const id = (await comment.getAttribute('data-comment')) ?? '';
    await commentMenu(page, comment, 'Edit');
    const editor = popover(page).getByLabel('Edit comment');
    await editor.fill('As I want it');
    await api(cluster, 'PATCH', `/comments/${id}`, { body: 'As a **moderator** wants it' });
    await popover(page).getByRole('alert').getByText('As a moderator wants it').waitFor();
    t.equal(await editor.inputValue(), 'As I want it');
    await popover(page).getByRole('button', { name: 'Replace with mine' }).waitFor();
    for (const label of ['Durch meine Fassung ersetzen und speichern', 'Replace with mine']) {
      await page.evaluate(`document.querySelector('collab-comments').strings = { saveMine: '${label}' }`);
      await popover(page).getByRole('button', { name: label }).waitFor();
      t.ok(
        await page.evaluate(`(() => {
          const root = document.querySelector('collab-comments').shadowRoot;
          const [button, popover] = ['.popover [part=submit]', '.popover'].map((name) => root.querySelector(name).getBoundingClientRect());
          return button.left >= popover.left && button.right <= popover.right;
        })()`),
        `"${label}" is within the popover`,
      );
    }
    await popover(page).getByRole('button', { name: 'Edit this text instead' }).click();
    await until(async () => (await editor.inputValue()) === 'As a **moderator** wants it');
    await popover(page).getByRole('button', { name: 'Save' }).waitFor();
    await editor.press('Escape');
    await field(page).waitFor();
  });

  await t.test('Escape in a field closes the thread, and is no shortcut of the page', async (t) => {
    await taken();
    await field(page).press('Escape');
    await popover(page).waitFor({ state: 'detached' });
    t.strictSame(
      (await taken()).filter((name) => name.startsWith('keydown')),
      [],
    );
  });

  await t.test('goes into what was opened before its code was loaded', async (t) => {
    const slow = await context.newPage();
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await slow.route(/\/widget\/opened-/, async (route) => (await released, route.continue()));
    await slow.goto(page.url());
    await live(slow);
    await slow.locator('collab-comments .pin').first().click();
    await slow.evaluate('new Promise(requestAnimationFrame)');
    t.equal(await popover(slow).count(), 0);
    release();
    await field(slow).waitFor();
    await until(() => slow.evaluate<boolean>(`${ROOT}.activeElement === ${AREA}`));
    await slow.close();
  });
});
