import t from 'tap';
import { startService } from '../helpers/service.ts';
import { addUser } from '../helpers/writer.ts';

interface Problem {
  readonly error: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
}

const service = await startService(t);
const tenant = await service.tenant('problems');
await addUser(tenant, 'ann');
const ask = (
  method: string,
  path: string,
  body?: unknown,
  headers = { Accept: 'application/problem+json, application/json' },
) => tenant.request<Problem>(method, path, { body, headers });

t.test('a client that accepts application/problem+json gets the fields that are refused', async (t) => {
  const { status, headers, json } = await ask('POST', '/rooms/room/threads', {
    userId: 7,
    position: { x: 2, y: 'low' },
  });
  t.equal(status, 400);
  t.equal(headers.get('content-type'), 'application/problem+json');
  t.equal(headers.get('cache-control'), 'no-store');
  t.equal(headers.get('vary'), 'Accept-Encoding, Accept');
  const { errors = [], ...problem } = json;
  const detail = problem.error;
  t.strictSame(problem, {
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    detail,
    instance: `#${headers.get('x-request-id')}`,
    code: 'invalid_request',
    error: detail,
  });
  t.equal(errors[0]?.message, detail, 'the message is that of the first');
  t.strictSame(
    new Map(errors.map(({ path, message }) => [path, message])),
    new Map([
      ['body', 'body is required'],
      ['userId', 'userId must be a string, not 7'],
      ['position.x', 'position.x must be between 0 and 1, not 2'],
      ['position.y', 'position.y must be a number, not "low"'],
    ]),
  );
});

t.test('a parameter is a field too, and other refusals have none', async (t) => {
  t.strictSame((await ask('GET', '/rooms?limit=many')).json.errors, [
    { path: 'limit', message: 'limit must be an integer between 1 and 1000, not "many"' },
  ]);
  t.strictSame((await ask('POST', '/rooms/room/threads', { userId: 'ann', body: '' })).json.errors, [
    { path: 'body', message: 'body must be 1 to 10000 characters, not 0' },
  ]);
  const { status, json } = await ask('GET', '/threads/unknown');
  t.match(
    { status, json },
    {
      status: 404,
      json: {
        title: 'Not Found',
        status: 404,
        detail: 'Thread not found',
        code: 'thread_not_found',
        error: 'Thread not found',
      },
    },
  );
  t.equal(json.errors, undefined);
});

t.test('a client that does not accept application/problem+json gets the usual body, whatever it names', async (t) => {
  for (const Accept of [
    'text/html, application/problem+json;q=0',
    'application/problem+json; q=0.000, */*',
    'application/problem+json-seq',
    'text/application/problem+json',
    'application/problem+jsonx',
  ]) {
    const { headers, json } = await ask('GET', '/threads/unknown', undefined, { Accept });
    t.equal(headers.get('content-type'), 'application/json; charset=utf-8', Accept);
    t.strictSame(json, { error: 'Thread not found' }, Accept);
  }
  for (const Accept of [
    'text/html,application/problem+json;q=0.001',
    'Application/Problem+JSON',
    'application/problem+json ; charset=utf-8;Q=1.0',
    'a/b;q=0, application/problem+json',
  ]) {
    t.equal(
      (await ask('GET', '/threads/unknown', undefined, { Accept })).headers.get('content-type'),
      'application/problem+json',
      Accept,
    );
  }
});

t.test('any other client gets the usual body', async (t) => {
  for (const Accept of ['application/json', '*/*', 'application/*'])
    t.strictSame((await ask('GET', '/threads/unknown', undefined, { Accept })).json, { error: 'Thread not found' });
});
