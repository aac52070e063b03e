import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { startService } from '../helpers/service.ts';

/**
 * Opens the reference and waits until it shows the operations. Complaints of the page, and requests to others, fail the
 * test.
 */
async function openReference(t: Test, url: string): Promise<Page> {
  const page = await (await openBrowser(t)).newPage({ viewport: { width: 1280, height: 900 } });
  page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') t.fail(`the page logged: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:'))
      t.fail(`the page asked for ${request.url()}`);
  });
  await page.goto(`${url}/docs`);
  await page.locator('.opblock').first().waitFor();
  return page;
}

/** Serves what is at `url` below a path of another server, as a proxy does; returns the address of that server. */
async function proxyBelow(t: Test, url: string, path: string): Promise<string> {
  const proxy = createServer((received, response) => {
    const { url: asked = '', method = 'GET', headers } = received;
    if (!asked.startsWith(`${path}/`)) return void response.writeHead(404).end();
    const sent = request(url + asked.slice(path.length), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    received.pipe(sent);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.teardown(() => proxy.closeAllConnections());
  t.teardown(() => proxy.close());
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

t.test(
  'the API reference shows every operation, from this server alone, also below a path of a proxy',
  { skip: skipReason },
  async (t) => {
    const cluster = await demoServer(t);
    // Its references are relative, so it works at the top of a server too.
    const page = await openReference(t, `${await proxyBelow(t, cluster.url, '/comments')}/comments`);
    t.match(await page.locator('.servers').innerText(), /\/comments\/api\/v1/);
    t.equal(await page.title(), 'Collab API reference');
    t.equal(await page.locator('.opblock').count(), apiRoutes.length + 1, 'the routes of the API, and the files');
    await page.getByRole('heading', { name: /^Collab/ }).waitFor();

    const create = page.locator('.opblock', { hasText: 'Create a thread with its first comment' });
    await create.locator('.opblock-summary-control').click();
    await create.getByText('Idempotency-Key', { exact: false }).first().waitFor();
    t.match(await create.locator('.opblock-section-request-body').innerText(), /This step fails on a fresh machine/);
    t.match(
      await create.locator('.responses-wrapper').innerText(),
      /201[^]*th_1kdyak3sepgf6w7g09te[^]*400[^]*invalid_request[^]*429[^]*rate_limited/,
    );

    const list = page.locator('.opblock', { hasText: 'List the threads of a room' });
    await list.locator('.opblock-summary-control').click();
    t.match(await list.locator('.parameters-container').innerText(), /resolved[^]*metadata/);

    await t.test('requests tried out as they open are answered, and do what they say', async (t) => {
      await authorize(page, cluster.keys.secretKey);
      t.match(
        await create.locator('.opblock-description').innerText(),
        /create the user first: PUT \/users\/\{userId\}/,
      );
      const putUser = page.locator('.opblock', { hasText: 'Create a user, or change the given fields' });
      await putUser.locator('.opblock-summary-control').click();
      await putUser.getByRole('button', { name: 'Try it out' }).click();
      t.match(await execute(putUser), { status: 200 }, 'the author of the other examples');
      await create.getByRole('button', { name: 'Try it out' }).click();
      const ids = [await execute(create), await execute(create)].map(({ status, body }) => {
        t.equal(status, 201, body);
        return /"id": "(th_\w+)"/.exec(body)?.[1] ?? '';
      });
      t.not(ids[0], ids[1], 'a second request is not a repetition of the first');
      await list.getByRole('button', { name: 'Try it out' }).click();
      const { status, body, command } = await execute(list);
      t.equal(status, 200, body);
      for (const id of ids) t.match(body, id, 'no filter is set');
      t.match(command, /\/api\/v1\/rooms\/docs-intro\/threads(?:\?sort=createdAt)?'/);
    });
  },
);

t.test('nothing is there when docs is false', async (t) => {
  const service = await startService(t, { flags: { docs: 'false' } });
  const [url = ''] = service.urls;
  for (const path of ['/docs', '/docs/page.js', '/docs/swagger-ui.css'])
    t.equal((await fetch(url + path)).status, 404, path);
  t.equal((await fetch(`${url}/api/v1/openapi.json`)).status, 200);
});

/** Enters a secret key. */
async function authorize(page: Page, secretKey: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  const form = page.locator('.auth-container', { hasText: 'secretKey' }).first();
  await form.locator('input').fill(secretKey);
  await form.getByRole('button', { name: 'Apply credentials' }).click();
  await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).last().click();
}

/** Sends the request of an operation, and returns the answer and the command line that the page shows. */
async function execute(operation: Locator): Promise<{ status: number; body: string; command: string }> {
  const clear = operation.getByRole('button', { name: 'Clear' });
  if (await clear.isVisible()) await clear.click();
  await operation.getByRole('button', { name: 'Execute' }).click();
  const answer = operation.locator('.live-responses-table .response');
  const status = Number(await answer.locator('.response-col_status').innerText());
  const command = await operation.locator('.curl-command').innerText();
  return { status, body: await answer.locator('.response-col_description').innerText(), command };
}
