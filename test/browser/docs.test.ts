import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { startCluster } from '../helpers/cluster.ts';

/** Opens the reference and waits until it shows the operations. Complaints of the page, and requests to others, fail the test. */
async function openReference(t: Test, url: string): Promise<Page> {
  const page = await (await openBrowser(t)).newPage({ viewport: { width: 1280, height: 900 } });
  page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') t.fail(`the page logged: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) t.fail(`the page asked for ${request.url()}`);
  });
  await page.goto(`${url}/docs`);
  await page.locator('.opblock').first().waitFor();
  return page;
}

t.test('the API reference shows every operation, from this server alone', { skip: skipReason, timeout: 60_000 }, async (t) => {
  const cluster = await startCluster({ workers: 1 });
  t.teardown(() => cluster.stop());
  const page = await openReference(t, cluster.url);

  t.equal(await page.title(), 'Collab API reference');
  t.equal(await page.locator('.opblock').count(), apiRoutes.length + 1, 'the routes of the API, and the files');
  await page.getByRole('heading', { name: /^Collab/ }).waitFor();

  const create = page.locator('.opblock', { hasText: 'Create a thread with its first comment' });
  await create.locator('.opblock-summary-control').click();
  await create.getByText('Idempotency-Key', { exact: false }).first().waitFor();
  t.match(await create.locator('.opblock-section-request-body').innerText(), /This step fails on a fresh machine/);
  t.match(await create.locator('.responses-wrapper').innerText(), /201[^]*th_1kdyak3sepgf6w7g09te[^]*400[^]*invalid_request[^]*429[^]*rate_limited/);

  const list = page.locator('.opblock', { hasText: 'List the threads of a room' });
  await list.locator('.opblock-summary-control').click();
  t.match(await list.locator('.parameters-container').innerText(), /resolved[^]*metadata/);

  await t.test('a request tried out there is answered', async (t) => {
    await page.getByRole('button', { name: 'Authorize' }).first().click();
    await page.locator('.auth-container', { hasText: 'secretKey' }).first().locator('input').fill(cluster.keys.secretKey);
    await page.locator('.auth-container', { hasText: 'secretKey' }).first().getByRole('button', { name: 'Apply credentials' }).click();
    await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).last().click();
    await list.getByRole('button', { name: 'Try it out' }).click();
    await list.getByRole('button', { name: 'Execute' }).click();
    const answer = list.locator('.live-responses-table');
    await answer.getByText('"items": []').waitFor();
    t.match(await answer.innerText(), /200/);
  });
});

t.test('nothing is there when docs is false', async (t) => {
  const cluster = await startCluster({ workers: 1, config: { docs: false } });
  t.teardown(() => cluster.stop());
  for (const path of ['/docs', '/docs/page.js', '/docs/swagger-ui.css']) t.equal((await fetch(cluster.url + path)).status, 404, path);
  t.equal((await fetch(`${cluster.url}/api/v1/openapi.json`)).status, 200);
});
