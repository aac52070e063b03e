import t from 'tap';
import { startService } from '../helpers/service.ts';
import { addUser, type Failure } from '../helpers/writer.ts';

// Refusals name what was sent: shortened, printable, and without secrets.

const service = await startService(t);
const tenant = await service.tenant('refusals');
await addUser(tenant, 'ann');

const errorOf = async (
  method: string,
  path: string,
  options: Parameters<typeof tenant.request>[2] = {},
): Promise<string> => (await tenant.request<Failure>(method, path, options)).json.error;
const thread = (body: unknown, headers = {}) => errorOf('POST', '/rooms/room/threads', { body, headers });

t.test('fields', async (t) => {
  const good = { userId: 'ann', body: 'Hi' };
  for (const [fields, error] of [
    [{ position: { x: 1.5, y: 0 } }, 'position.x must be between 0 and 1, not 1.5'],
    [{ position: 'here' }, 'position must be an object, not "here"'],
    [{ body: ['Hi'] }, 'body must be a string, not an array'],
    [{ body: { text: 'Hi' } }, 'body must be a string, not an object'],
    [{ userId: null }, 'userId must be a string, not null'],
    [{ body: 'x'.repeat(10_001) }, 'body must be 1 to 10000 characters, not 10001'],
    [
      { mentions: Array.from({ length: 51 }, (_, index) => `u${index}`) },
      'mentions must hold at most 50 user ids, not 51',
    ],
    [{ userId: 'a\u0007' }, 'userId must not contain control characters or lone surrogates such as "\\u0007"'],
    [{ body: true }, 'body must be a string, not true'],
  ] as const) {
    t.equal(await thread({ ...good, ...fields }), error);
  }
});

t.test('parameters, headers and bodies', async (t) => {
  t.equal(
    await errorOf('GET', `/rooms?order=${encodeURIComponent('\u202eup\n')}`),
    'order must be one of asc, desc, not "·up\\n"',
  );
  t.equal(
    await errorOf('GET', `/rooms?sort=${'x'.repeat(50)}`),
    `sort must be one of createdAt, updatedAt, not "${'x'.repeat(40)}…" (50 characters)`,
  );
  t.equal(
    await thread('{}', { 'Content-Type': 'text/plain' }),
    'Content-Type must be application/json, not "text/plain"',
  );
  t.equal(await thread('userId=ann&body=Hi'), 'The body is not valid JSON; it begins with "userId=ann&b"');
  t.equal(await thread('[]'), 'The body must be a JSON object, not an array');
  t.equal(await thread('x'.repeat(300_000)), 'The body must be at most 262144 bytes, not 300000');
  t.equal(
    await errorOf('PATCH', '/rooms'),
    'Nothing is served at this path with this method: "PATCH /api/v1/rooms"; it takes GET',
  );
});

t.test('credentials are recognised and not repeated', async (t) => {
  const { secretKey, publishableKey } = tenant;
  const token = await tenant.token({ userId: 'ann' });
  const form = 'Authorization must consist of the word Bearer, a space and the secret key';
  for (const [Authorization, error] of [
    [`Basic ${secretKey}`, `${form}, not the scheme Basic`],
    [secretKey, `${form}, not a value of ${secretKey.length} characters without a scheme`],
    [`Bearer ${publishableKey}`, 'Invalid API key: a secret key begins with sk_, and this is a publishable key'],
    [`Bearer ${token}`, 'Invalid API key: a secret key begins with sk_, and this is a user token'],
    ['Bearer hunter2', 'Invalid API key: a secret key begins with sk_, and this is another text of 7 characters'],
    ['Bearer sk_unknown', 'Invalid API key'],
  ] as const) {
    t.equal(await errorOf('GET', '/rooms', { key: null, headers: { Authorization } }), error);
  }
  const asUser = (key: string) =>
    errorOf('GET', '/turn-credentials', { key: null, headers: { 'X-Service-Key': key, 'X-Service-Token': token } });
  t.equal(await asUser(secretKey), 'Invalid API key: a publishable key begins with pk_, and this is a secret key');
  const login = (password: unknown) =>
    errorOf('POST', '/admin/auth/login', { key: null, body: { email: 'ops@example.com', password } });
  t.equal(await login(123_456), 'password must be a string, not a number');
});

t.test('an upload without a file names what the body has', async (t) => {
  const token = await tenant.token({ userId: 'ann' });
  const upload = (type: string, body: string) =>
    errorOf('POST', '/upload', {
      key: null,
      body,
      headers: { 'X-Service-Key': tenant.publishableKey, 'X-Service-Token': token, 'Content-Type': type },
    });
  const form = '--b\r\nContent-Disposition: form-data; name="document"\r\n\r\nx\r\n--b--\r\n';
  t.equal(
    await upload('multipart/form-data; boundary=b', form),
    'No file provided: send one part named file; the body has "document"',
  );
  t.match(await upload('application/json', '{}'), /; the Content-Type is "application\/json"$/);
});
