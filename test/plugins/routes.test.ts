import t from 'tap';
import { fileURLToPath } from 'node:url';
import { startCluster } from '../helpers/cluster.ts';
import { userToken } from '../helpers/user-token.ts';

const good = fileURLToPath(new URL('../fixtures/plugins/good.mjs', import.meta.url));
const ORIGIN = 'https://app.example';

t.test(
  'routes of plugins take the credential of their kind, and pages of other origins only where users call them',
  async (t) => {
    const cluster = await startCluster({ workers: 1, config: { plugins: [{ use: good }] } });
    t.teardown(() => cluster.kill());
    const { url, keys } = cluster;
    const token = await userToken(keys, 'ann');
    const user = { 'x-service-key': keys.publishableKey, 'x-service-token': token };
    const secret = { authorization: `Bearer ${keys.secretKey}` };
    const call = async (
      method: string,
      path: string,
      headers: Readonly<Record<string, string>> = {},
      body?: string | Buffer,
    ) => {
      const answer = await fetch(`${url}/api/v1/plugins/good/${path}`, {
        method,
        headers: { origin: ORIGIN, ...headers },
        ...(body === undefined ? {} : { body }),
      });
      return {
        status: answer.status,
        code: answer.headers.get('x-error-code'),
        origin: answer.headers.get('access-control-allow-origin'),
        headers: answer.headers,
        text: await answer.text(),
      };
    };
    await fetch(`${url}/api/v1/users/ann`, {
      method: 'PUT',
      headers: { ...secret, 'content-type': 'application/json' },
      body: '{"name":"Ann"}',
    });

    const echoed = await call('POST', 'default/echo', { ...user, 'x-sent': 'yes' }, 'hello');
    t.match(echoed, { status: 201 });
    t.strictSame(JSON.parse(echoed.text), { userId: 'ann', body: 'hello', sent: 'yes' });
    t.ok(echoed.origin === '*' || echoed.origin === ORIGIN, 'a page of another origin may read the answer');
    const preflight = await call('OPTIONS', 'default/echo', {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-service-key,x-service-token',
    });
    t.match(preflight.headers.get('access-control-allow-headers'), /x-service-token/i);

    t.match(await call('POST', 'default/echo', {}, 'x'), { status: 401 }, 'no credential');
    t.match(
      await call('POST', 'nowhere/echo', {}, 'x'),
      { status: 401 },
      'the credential is checked before the environment',
    );
    t.match(await call('POST', 'nowhere/echo', user, 'x'), { status: 404, code: 'environment_not_found' });
    t.match(await call('POST', 'default/echo', user, 'x'.repeat(64 * 1024 + 1)), { status: 413 });
    t.match(await call('POST', 'default/echo', user, Buffer.from([0xff])), { status: 400, code: 'invalid_request' });
    t.match(await call('GET', 'default/seen', user), { status: 401 }, 'a user cannot call a route for secret keys');
    t.equal((await call('GET', 'default/seen', secret)).origin, null, 'no page may read the answer to a secret key');

    const byKey = await userToken(keys, 'ann', { rooms: ['a/*'], confinedKey: 'key_1' });
    t.match(
      await call('POST', 'default/echo', { ...user, 'x-service-token': byKey }, 'x'),
      { status: 403, code: 'forbidden' },
      'what plugins keep for a user counts in all rooms',
    );

    const page = await call('GET', 'default/page?name=ann');
    t.match(page, { status: 200, text: '<p>ann</p>' }, 'a public route takes no credential');
    t.match(page.headers.get('content-security-policy'), /default-src 'none'/);
    t.match(await call('GET', 'nowhere/page'), { status: 404 });
    t.match(await call('GET', 'default/missing', secret), { status: 404 });
  },
);
