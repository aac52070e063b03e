// Takes the pictures of README.md from the demo page, in docs/pictures/. Run it after changing what the widget looks
// like: npm run build && node --import=tsx tools/take-pictures.ts. It needs Chromium (CHROMIUM, /usr/bin/chromium if
// absent), and a font with emoji (Debian's fonts-noto-color-emoji).
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import sharp from 'sharp';

const root = fileURLToPath(new URL('../', import.meta.url));
const folder = join(root, 'docs/pictures');
const command = join(root, 'dist/bin/collab.js');
const WINDOW = { width: 1180, height: 760 };

interface Demo {
  readonly url: string;
  readonly secretKey: string;
  readonly stop: () => Promise<void>;
}

/** Starts a server with the demo page in a folder of its own. */
async function startDemo(): Promise<Demo> {
  const dir = mkdtempSync(join(tmpdir(), 'collab-pictures-'));
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ demo: true, storage: { minFreeMb: 0 } }));
  const init = spawn(process.execPath, [command, 'init', '--dir', dir, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const chunk of init.stdout) printed += String(chunk);
  const { secretKey } = JSON.parse(printed) as { secretKey: string };
  const server = spawn(process.execPath, [command, 'start', '--dir', dir, '--port', '0', '--workers', '1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const stop = async (): Promise<void> => {
    server.kill('SIGTERM');
    await ended;
    rmSync(dir, { recursive: true, force: true });
  };
  for await (const line of createInterface(server.stdout)) {
    const { msg, url } = line.startsWith('{')
      ? (JSON.parse(line) as { msg: string; url: string })
      : { msg: '', url: '' };
    if (msg === 'ready') {
      server.stdout.resume();
      return { url, secretKey, stop };
    }
  }
  throw new Error('The server ended before it was ready');
}

/** Calls the REST API. */
async function call<T>({ url, secretKey }: Demo, method: string, path: string, body: unknown): Promise<T> {
  const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}

const at = (selector: string, elementOffsetX: number, elementOffsetY: number): unknown => ({
  x: 0.5,
  y: 0.5,
  selector,
  elementOffsetX,
  elementOffsetY,
});

/** The threads that the page shows. Returns the id of the one to open. */
async function writeThreads(demo: Demo): Promise<string> {
  const people = { ann: 'Ann', bob: 'Bob', mia: 'Mia Costa', tom: 'Tom Weber' };
  for (const [userId, name] of Object.entries(people)) await call(demo, 'PUT', `/users/${userId}`, { name });
  await call(demo, 'PUT', '/users/ci-bot', { name: 'Release bot', kind: 'bot' });
  const create = async (userId: string, body: string, position: unknown, mentions: string[] = []): Promise<string> =>
    (await call<{ thread: { id: string } }>(demo, 'POST', '/rooms/demo/threads', { userId, body, position, mentions }))
      .thread.id;
  const reply = (threadId: string, userId: string, body: string, mentions: string[] = []) =>
    call<{ comment: { id: string } }>(demo, 'POST', `/threads/${threadId}/comments`, { userId, body, mentions });

  await create(
    'tom',
    'The newsletter goes out on the 4th, so this has to be done before.',
    at('#note-price', 0.72, 0.5),
  );
  const markets = await create('mia', 'Does “all markets” include Norway?', at('#summary', 0.98, 0.9));
  await reply(markets, 'bob', 'Since Tuesday, yes.');
  await create('ci-bot', 'Release 4.2 is live in all regions.', at('#orders', 0.3, 0.2));
  const opened = await create(
    'ann',
    'What happened in the second week? The curve flattens before it climbs again.',
    at('#revenue', 0.42, 0.52),
  );
  const answer = await reply(opened, 'mia', 'The campaign ended on the 9th. @Bob, do we have the numbers without it?', [
    'bob',
  ]);
  await reply(opened, 'bob', 'They are in the **October** sheet: `+6 %` without it.');
  for (const [userId, emoji] of [
    ['ann', '👍'],
    ['bob', '👍'],
    ['tom', '🎉'],
  ])
    await call(demo, 'POST', `/comments/${answer.comment.id}/reactions`, { userId, emoji });
  return opened;
}

/** Opens the product page of the demo as a user, with a thread opened if named. */
async function open(
  browser: Browser,
  demo: Demo,
  user: string,
  options: BrowserContextOptions,
  threadId = '',
): Promise<Page> {
  const page = await (await browser.newContext({ viewport: WINDOW, reducedMotion: 'reduce', ...options })).newPage();
  await page.goto(`${demo.url}/demo/page?user=${user}${threadId === '' ? '' : `#collab=${threadId}`}`);
  await page.locator('.pin').nth(3).waitFor();
  if (threadId !== '') await page.locator('.popover .comment').nth(2).waitFor();
  return page;
}

/** A picture of the page, which `open` keeps from moving. */
async function picture(page: Page, name: string): Promise<void> {
  await sharp(await page.screenshot())
    .webp({ quality: 84 })
    .toFile(join(folder, `${name}.webp`));
}

/** Two users beside each other: one writes a thread, the other sees it at once and answers. */
async function animation(browser: Browser, demo: Demo): Promise<void> {
  const viewport = { width: 1320, height: 900 };
  const page = await (await browser.newContext({ viewport, colorScheme: 'light', reducedMotion: 'reduce' })).newPage();
  await page.goto(demo.url);
  const [ann, bob] = [page.frameLocator('[title="The page as Ann"]'), page.frameLocator('[title="The page as Bob"]')];
  for (const frame of [ann, bob]) await frame.locator('.pin').nth(3).waitFor();
  const frames: Buffer[] = [];
  const delay: number[] = [];
  const clip = { x: 0, y: 0, width: viewport.width, height: 600 };
  const shoot = async (ms: number): Promise<void> => {
    frames.push(
      await sharp(await page.screenshot({ clip }))
        .resize({ width: 960 })
        .png()
        .toBuffer(),
    );
    delay.push(ms);
  };

  await shoot(900);
  await ann.getByRole('button', { name: 'Add a comment' }).click();
  await ann.getByRole('application').waitFor();
  const target = await ann.locator('.figures li').nth(1).boundingBox();
  if (target === null) throw new Error('The figures are not visible');
  await page.mouse.move(target.x + 60, target.y + 40, { steps: 4 });
  await shoot(700);
  await page.mouse.click(target.x + 60, target.y + 40);
  const field = ann.getByLabel('Add a comment…');
  await field.waitFor();
  for (const part of ['A record', ' for October.', ' Shall we', ' tell the team?']) {
    await field.pressSequentially(part);
    await shoot(320);
  }
  await page.keyboard.press('Enter');
  const arrived = bob.getByRole('button', { name: /A record for October/ });
  await arrived.waitFor();
  await shoot(1_100);
  await arrived.click();
  const answer = bob.getByLabel('Reply…');
  await answer.waitFor();
  await shoot(700);
  for (const part of ['Done,', ' in the', ' Monday mail 🎉']) {
    await answer.pressSequentially(part);
    await ann.getByText('Bob is typing…').waitFor();
    await shoot(320);
  }
  await page.keyboard.press('Enter');
  await ann.locator('.popover').getByText('Monday mail').waitFor();
  await shoot(1_400);
  await ann.locator('.popover').getByRole('button', { name: 'Resolve' }).click();
  await bob
    .locator('.popover')
    .getByText(/Resolved by/)
    .waitFor();
  await shoot(2_200);
  await sharp(frames, { join: { animated: true } })
    .webp({ quality: 74, effort: 6, delay, loop: 0 })
    .toFile(join(folder, 'two-users.webp'));
}

mkdirSync(folder, { recursive: true });
const demo = await startDemo();
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const threadId = await writeThreads(demo);
  await picture(await open(browser, demo, 'ann', { colorScheme: 'light' }, threadId), 'thread-light');
  const dark = await open(browser, demo, 'bob', { colorScheme: 'dark' });
  await dark.evaluate('document.querySelector("collab-comments").togglePanel(true)');
  await dark.locator('.panel .item').nth(3).waitFor();
  await picture(dark, 'panel-dark');
  const phone = { viewport: { width: 390, height: 760 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
  await picture(await open(browser, demo, 'ann', { ...phone, colorScheme: 'light' }, threadId), 'phone');
  await animation(browser, demo);
} finally {
  await browser.close();
  await demo.stop();
}
