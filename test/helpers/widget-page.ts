import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import { type Cluster, until } from './cluster.ts';

/** Errors of the network that a page logs while a test has stopped its server. */
const LOST =
  /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|WebSocket connection|ERR_INTERNET_DISCONNECTED/;

/**
 * Opens a page with the widget. Whatever the page complains of fails the test, but what `expected` matches and a lost
 * connection.
 */
export async function openPage(t: Test, context: BrowserContext, url: string, expected = /^$/): Promise<Page> {
  const page = await context.newPage();
  page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
  page.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !LOST.test(text) && !expected.test(text)) t.fail(`the page logged: ${text}`);
  });
  await page.goto(url);
  return page;
}

/** Opens the product page of the demo as a user and waits until it is connected. */
export async function openDemo(
  t: Test,
  context: BrowserContext,
  cluster: Cluster,
  user: string,
  expected = /^$/,
): Promise<Page> {
  const page = await openPage(t, context, `${cluster.url}/demo/page?user=${user}`, expected);
  await live(page);
  return page;
}

/** Waits until the widget is connected. */
export async function live(page: Page): Promise<void> {
  await page.locator('collab-comments .toolbar').waitFor();
  await page.locator('collab-comments .connection').waitFor({ state: 'detached' });
}

/**
 * Waits until the widget is connected again, without the delays between its attempts: a page tries at once when the
 * network is back.
 */
export async function reconnected(page: Page): Promise<void> {
  await page.locator('collab-comments .toolbar').waitFor();
  await until(async () => {
    await page.evaluate("window.dispatchEvent(new Event('online'))");
    return (await page.locator('collab-comments .connection').count()) === 0;
  }, 60_000);
}

/** The field of the open thread. */
export function field(page: Page): Locator {
  return popover(page).locator('.composer textarea');
}

/** The pin of the thread with this text. */
export function pin(page: Page, text: string): Locator {
  return page.getByRole('button', { name: new RegExp(`[Tt]hread by .*${text}`) }).and(page.locator('.pin'));
}

/** The open thread. */
export function popover(page: Page): Locator {
  return page.locator('collab-comments .popover');
}

/** The comment of the open thread with this text, once the server has it. */
export function commentWith(page: Page, text: string): Locator {
  return popover(page).locator('.comment:not(.pending)', { hasText: text });
}

/** Opens the menu of a comment, and chooses an action if one is given. */
export async function commentMenu(page: Page, comment: Locator, action?: string): Promise<void> {
  await comment.hover();
  await comment.getByRole('button', { name: 'More actions' }).click();
  if (action !== undefined) await page.getByRole('menuitem', { name: action }).click();
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds in a page, as one line for each rule. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(`globalThis.axe === undefined && (() => { ${axe} })()`);
  await page.evaluate(`Promise.all(
    [document, document.querySelector('collab-comments')?.shadowRoot]
      .flatMap((root) => root?.getAnimations() ?? [])
      .filter((animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime))
      .map((animation) => animation.finished.catch(() => {})),
  )`);
  // What passes is named by one element each.
  const found = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => ({ violations }))",
  );
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}

/** Chooses a place on an element of the page, writes a new thread there and sends it. */
export async function comment(page: Page, selector: string, text: string): Promise<void> {
  const target = page.locator(selector).first();
  await target.scrollIntoViewIfNeeded();
  await page.getByRole('button', { name: 'Add a comment' }).click();
  await page.getByRole('application').waitFor();
  const box = await target.boundingBox();
  if (box === null) throw new Error(`${selector} is not visible`);
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await page.getByLabel('Add a comment…').fill(text);
  await page.keyboard.press('Enter');
  await pin(page, text.slice(0, 20)).waitFor();
}

/** Calls the REST API of a cluster as a backend. */
export async function api(cluster: Cluster, method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { Authorization: `Bearer ${cluster.keys.secretKey}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${cluster.url}/api/v1${path}`, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  return answer;
}
