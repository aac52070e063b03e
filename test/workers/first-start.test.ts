import { rmSync } from 'node:fs';
import t from 'tap';
import { startCollab } from '../helpers/cli.ts';
import { initFolder, stablePort, until } from '../helpers/cluster.ts';

t.test('a mention is notified although it was written as soon as the first start of a server answered', async (t) => {
  const { dir, keys } = await initFolder({ rateLimit: { perMinute: 1_000_000 } }, { own: true });
  const port = await stablePort();
  const api = `http://127.0.0.1:${port}/api/v1`;
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${keys.secretKey}`, 'content-type': 'application/json' };
    const answer = await fetch(api + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}`);
    return (await answer.json()) as T;
  };
  const server = startCollab(t, ['start', '--dir', dir, '--port', String(port), '--workers', '1']);
  // Before the line that reports the server as ready, for which its background worker must have started.
  await until(() =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  for (const userId of ['ann', 'bob']) await call('PUT', `/users/${userId}`, {});
  await call('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first', mentions: ['bob'] });
  await until(async () => (await call<{ unreadCount: number }>('GET', '/users/bob/notifications')).unreadCount === 1);
  t.pass('bob was notified');
  await server.end();
  rmSync(dir, { recursive: true, force: true });
});
