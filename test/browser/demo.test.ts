import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import t from 'tap';
import type { Test } from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, type Folder, initFolder, startCluster, until } from '../helpers/cluster.ts';
import { api, commentMenu, live, openDemo, openPage, pin, popover } from '../helpers/widget-page.ts';

const config = { demo: true, shutdown: { closeSpreadSeconds: 0 } };

async function startDemo(t: Test, folder: Folder, port = 0): Promise<Cluster> {
  const cluster = await startCluster({ workers: 2, folder, port });
  t.teardown(() => cluster.kill());
  return cluster;
}

t.test('the demo page shows what happens, on every worker, and keeps it', { skip: skipReason }, async (t) => {
  const folder = await initFolder(config);
  t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
  const cluster = await startDemo(t, folder);
  await api(cluster, 'PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' });
  const browser = await openBrowser(t);
  const viewport = { width: 1100, height: 900 };
  const context = await browser.newContext({ viewport });
  const ann = await openDemo(t, context, cluster, 'ann');
  const bob = await openDemo(t, await browser.newContext({ viewport }), cluster, 'bob');
  const loads = { count: 0 };
  for (const page of [ann, bob]) page.on('load', () => (loads.count += 1));

  await t.test(
    'the pasted curl line of the page posts a thread that appears at once, with its markup as text',
    async (t) => {
      const both = await openPage(
        t,
        await browser.newContext({ viewport: { width: 1500, height: 1000 } }),
        cluster.url,
        /status of 401/,
      );
      for (const title of ['The page as Ann', 'The page as Bob'])
        await both.frameLocator(`[title="${title}"]`).locator('.toolbar').waitFor();
      await both.getByLabel('Comment', { exact: true }).fill("Deployment <b>failed</b>: it's build 42");
      await both.getByLabel('Secret key').fill(cluster.keys.secretKey);
      const line = await both.getByLabel('The curl line').innerText();
      execFileSync('sh', ['-c', `${line} --silent --fail-with-body`], { encoding: 'utf8' });
      for (const page of [ann, bob]) {
        await pin(page, 'Deployment').click();
        t.match(await popover(page).locator('.body').innerText(), "Deployment <b>failed</b>: it's build 42");
        t.equal(await popover(page).locator('b').count(), 0);
      }
      for (const title of ['The page as Ann', 'The page as Bob'])
        await both.frameLocator(`[title="${title}"]`).locator('.pin').waitFor();

      await both.getByLabel('Secret key').fill('sk_wrong');
      await both.getByRole('button', { name: 'Post', exact: true }).click();
      await both.getByText(/^401: /).waitFor();
      await both.getByLabel('Secret key').fill(cluster.keys.secretKey);
      await both.getByLabel('Comment', { exact: true }).fill('Posted by the button');
      await both.getByRole('button', { name: 'Post', exact: true }).click();
      await both.getByText('201: it is on both pages.').waitFor();
      await both.close();
      await api(cluster, 'POST', '/rooms/elsewhere/threads', { userId: 'ci-bot', body: 'Not in this room' });
      const { items } = (await (await api(cluster, 'GET', '/rooms/demo/threads')).json()) as {
        items: { id: string; positionX: number }[];
      };
      t.equal(items.length, 2);
      for (const page of [ann, bob]) await page.locator('.pin').nth(1).waitFor();
      await api(cluster, 'DELETE', `/threads/${items[0]?.id}`);
      for (const page of [ann, bob]) await page.locator('.pin').nth(1).waitFor({ state: 'detached' });
    },
  );

  await t.test('on a phone every entry of the navigation is in sight', async (t) => {
    const phone = await openPage(t, await browser.newContext({ viewport }), cluster.url);
    for (const width of [375, 320]) {
      await phone.setViewportSize({ width, height: 700 });
      const frame = phone.frameLocator('[title="The page as Ann"]');
      await frame.locator('.toolbar').waitFor();
      const pane = await phone.locator('[title="The page as Ann"]').boundingBox();
      for (const link of await frame.locator('nav a').all()) {
        const box = await link.boundingBox();
        t.ok(
          pane !== null && box !== null && box.x + box.width <= pane.x + pane.width - 16,
          `${await link.innerText()} in a window ${width} wide`,
        );
      }
    }
    await phone.close();
  });

  await t.test('a reply, an edit, a resolve and a reopen reach the other page', async (t) => {
    const reply = (page: typeof ann) => popover(page).getByLabel('Reply…');
    await reply(ann).fill('I look into it');
    await ann.keyboard.press('Enter');
    await popover(bob).getByText('I look into it').waitFor();
    await reply(bob).fill('half a sentence');
    // Who has typed nothing for 5 s does not type.
    await until(async () => {
      await reply(bob).press('.');
      return popover(ann).getByText('Bob is typing…').isVisible();
    });
    const typed = await reply(bob).inputValue();
    t.match(typed, /^half a sentence\.+$/);

    const own = popover(ann).locator('.comment', { hasText: 'I look into it' });
    await commentMenu(ann, own, 'Edit');
    await ann.getByLabel('Edit comment').fill('I looked into it');
    await ann.keyboard.press('Control+Enter');
    const edited = popover(bob).locator('.comment', { hasText: 'I looked into it' });
    await edited.getByText('edited', { exact: true }).waitFor();
    await commentMenu(bob, edited);
    t.equal(await bob.getByRole('menuitem', { name: 'Edit' }).count(), 0, 'only the author may edit');
    await bob.keyboard.press('Escape');

    await popover(ann).getByRole('button', { name: 'Resolve' }).click();
    await popover(bob).getByText('Resolved by Ann').waitFor();
    await popover(bob).getByRole('button', { name: 'Reopen' }).click();
    await pin(ann, 'Deployment').click();
    await popover(ann).getByRole('button', { name: 'Resolve' }).waitFor();
    t.equal(await reply(bob).inputValue(), typed, 'what is being typed stays');
  });

  await t.test(
    'with the keyboard alone a thread is posted; deleting its only comment takes it from both pages',
    async () => {
      for (const page of [ann, bob]) await page.keyboard.press('Escape');
      await bob.getByRole('button', { name: 'Add a comment' }).focus();
      await bob.keyboard.press('Enter');
      await bob.getByRole('application').waitFor();
      await bob.keyboard.press('Shift+ArrowDown');
      await bob.keyboard.press('Enter');
      await bob.getByLabel('Add a comment…').waitFor();
      await bob.keyboard.type('Posted by mistake');
      await bob.keyboard.press('Enter');
      await pin(ann, 'Posted by mistake').waitFor();
      await popover(bob).getByRole('button', { name: 'More actions' }).focus();
      await bob.keyboard.press('Enter');
      await bob.keyboard.press('End');
      await bob.keyboard.press('Enter');
      await bob.getByText('Thread deleted').waitFor();
      await bob.getByRole('button', { name: 'Dismiss' }).focus();
      await bob.keyboard.press('Enter');
      for (const page of [ann, bob]) await pin(page, 'Posted by mistake').waitFor({ state: 'detached' });
    },
  );

  await t.test('a refusal is said in words', async (t) => {
    await pin(ann, 'Deployment').click();
    await ann.evaluate(
      "document.querySelector('collab-comments').addEventListener('collab-error', ({ detail }) => (window.refused = detail))",
    );
    await popover(ann)
      .getByLabel('Attach a file')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') });
    t.match(await ann.getByRole('alert').textContent(), /notes\.txt cannot be attached\. Choose a picture/);
    t.strictSame(
      await ann.evaluate('window.refused'),
      { code: 'unsupported_media', message: 'Files of this type are not accepted: notes.txt' },
      'and to the page, by an event',
    );
    await ann.getByRole('alert').getByRole('button', { name: 'Dismiss' }).click();
  });

  await t.test('after kill -9 of the whole cluster the pages come back by themselves, with everything', async (t) => {
    for (const pid of [...cluster.pids('web'), ...cluster.pids('background')]) process.kill(pid, 'SIGKILL');
    cluster.signal('SIGKILL');
    await cluster.ended;
    await bob.getByText(/The connection was lost\. Reconnecting|There is no connection/).waitFor();

    const again = await startDemo(t, folder, cluster.port);
    await Promise.all([live(ann), live(bob)]);
    await api(again, 'POST', '/rooms/demo/threads', {
      userId: 'ci-bot',
      body: 'Back again',
      position: { x: 0.9, y: 0.5 },
    });
    for (const page of [ann, bob]) {
      await pin(page, 'Back again').waitFor();
      t.equal(await page.locator('.pin').count(), 2);
      if ((await popover(page).count()) === 0) await pin(page, 'Deployment').click();
      t.equal(await popover(page).locator('.comment').count(), 2);
    }
    const late = await openDemo(t, context, again, 'ann');
    await pin(late, 'Deployment').waitFor();
    t.equal(await late.locator('.pin').count(), 2, 'a new page shows the same');
  });
  t.equal(loads.count, 0, 'no page was reloaded');
});
