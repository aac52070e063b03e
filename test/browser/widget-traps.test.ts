import { readFile } from 'node:fs/promises';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { servePage } from '../helpers/own-page.ts';
import { comment, field, live, openPage, pin, popover } from '../helpers/widget-page.ts';

t.test('in the widget on a page that traps the focus in a dialog', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const html = await readFile(new URL('pages/traps.html', import.meta.url), 'utf8');
  const context = await (await openBrowser(t)).newContext();
  const page = await openPage(t, context, await servePage(t, cluster, html));
  await live(page);
  await comment(page, '#title', 'First');
  await page.keyboard.press('Escape');
  const inside = (): Promise<string> => page.locator('#inside').inputValue();

  for (const [name, role] of [
    ['focus-trap', false],
    ['focus-trap', true],
    ['bootstrap', true],
    ['jquery-ui', false],
    ['radix', true],
    ['headless', true],
  ] as const) {
    await t.test(`one can write: ${name}${role ? ' in a dialog that says so' : ''}`, async (t) => {
      await page.locator('#title').click();
      await page.evaluate(`trap(${JSON.stringify(name)}, ${role})`);
      await pin(page, 'First').click();
      await popover(page).waitFor();
      await field(page).click();
      await page.keyboard.type('Written');
      t.equal(await field(page).inputValue(), 'Written');
      t.equal(await inside(), '', 'nothing went to the dialog');
      await page.keyboard.press('Enter');
      await popover(page).locator('.comment:not(.pending)', { hasText: 'Written' }).last().waitFor();
      t.strictSame(await page.locator('collab-comments .toast').allInnerTexts(), []);
      await page.locator('#inside').click();
      await page.keyboard.type('own');
      t.equal(await inside(), 'own', 'the dialog has the focus when the user turns to it');
      await popover(page).getByRole('button', { name: 'Close' }).click();
      await page.evaluate('untrap()');
      await until(() =>
        page.evaluate<boolean>("document.querySelector('collab-comments')?.parentElement === document.body"),
      );
      await live(page);
    });
  }

  await t.test('one is told when the focus cannot be held', async () => {
    await page.evaluate("trap('relentless', false)");
    await pin(page, 'First').click();
    await page.getByRole('alert').getByText('This page takes the keyboard back').waitFor();
    await page.evaluate('untrap()');
    await popover(page).getByRole('button', { name: 'Dismiss' }).click();
    await field(page).click();
    await page.keyboard.type('Again');
    await until(async () => (await field(page).inputValue()) === 'Again');
    await field(page).fill('');
    await page.keyboard.press('Escape');
  });

  await t.test('the widget stays when a dialog replaces its content, and returns when it is hidden', async (t) => {
    await page.evaluate(
      `document.body.insertAdjacentHTML('beforeend', '<div id="sheet" role="dialog" aria-modal="true" style="display:none"><p>One</p><p>Two</p></div>')`,
    );
    const parent = (): Promise<string> =>
      page.evaluate<string>("document.querySelector('collab-comments')?.parentElement?.id ?? ''");
    t.equal(await parent(), '');
    await page.evaluate("document.querySelector('#sheet').style.display = 'block'");
    await until(async () => (await parent()) === 'sheet');
    await page.evaluate("document.querySelector('#sheet').innerHTML = '<p>Three</p>'");
    await until(async () => (await parent()) === 'sheet');
    await live(page);
    await page.evaluate("document.querySelector('#sheet').style.display = 'none'");
    await until(
      async () => (await parent()) === '' && (await page.locator('collab-comments:popover-open').count()) === 0,
    );
  });
});
