import t from 'tap';
import { RawConnection } from '../helpers/raw-http.ts';
import { startService } from '../helpers/service.ts';

const service = await startService(t);
const { port } = new URL(service.urls[0] ?? '');

async function get(
  lines = '',
): Promise<{ readonly headers: Readonly<Record<string, string>>; readonly connection: RawConnection }> {
  const connection = await RawConnection.open(Number(port));
  await connection.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`);
  const { headers } = await connection.answer();
  return { headers, connection };
}

t.test('Keep-Alive | an idle connection stays open for at least the time that it names', async (t) => {
  const start = performance.now();
  const { headers, connection } = await get();
  const [, seconds] = /^timeout=(\d+)$/.exec(headers['keep-alive'] ?? '') ?? [];
  t.ok(Number(seconds) > 0);
  t.equal(await connection.ended, '', 'the server closes it');
  t.ok(performance.now() - start >= Number(seconds) * 1_000);
});

t.test(
  'Keep-Alive | is the same in every answer, refusals too, and absent from the last of a connection',
  async (t) => {
    const tenant = await service.tenant('kept');
    for (const [method, path] of [
      ['GET', '/rooms'],
      ['GET', '/nowhere'],
      ['GET', '/threads/unknown'],
    ] as const) {
      const { headers } = await tenant.request(method, path);
      t.equal(headers.get('keep-alive'), 'timeout=8', `${method} ${path}`);
    }
    const { headers, connection } = await get('Connection: close\r\n');
    t.equal(headers['keep-alive'], undefined);
    await connection.ended;
  },
);
