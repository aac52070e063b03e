import t from 'tap';
import { MemoryStore } from '../doubles/memory-store.ts';
import { login } from '../../src/domain/admins/admin-sessions.ts';
import { createAdmin } from '../../src/domain/admins/admins.ts';
import { IDEMPOTENCY_TTL_MS } from '../../src/domain/idempotency.ts';
import { ADMIN_IDEMPOTENCY, signingKeysOf } from '../../src/domain/records/partitions.ts';
import { listSigningKeys } from '../../src/domain/access/signing-keys.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import { storeSweeps } from '../../src/workers/background/sweeps.ts';
import type { Transaction } from '../../src/ports/store.ts';
import { startTestServer, type TestResponse } from '../helpers/http.ts';
import { ADMIN, adminSession } from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { done } from '../helpers/writer.ts';

// test/spec/idempotency.test.ts covers every route that takes Idempotency-Key. These tests cover answers that contain
// secrets.

interface MadeKey {
  readonly key: { readonly id: string; readonly secretKey: string };
}
interface MadeEnvironment {
  readonly environment: Environment;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}
interface Keys {
  readonly items: readonly { readonly id: string; readonly name: string }[];
}
interface PostOptions {
  readonly session?: string;
  readonly worker?: number;
}

const service = await startService(t, { workers: 2 });
const tenant = await service.tenant('acme');
const keysPath = `/admin/environments/${tenant.environment.id}/keys`;

async function post<T>(
  path: string,
  body: object,
  key: string,
  { session, worker }: PostOptions = {},
): Promise<TestResponse<T>> {
  return tenant.request<T>('POST', path, {
    body,
    key: session ?? (await adminSession(service)),
    headers: { 'Idempotency-Key': key },
    worker,
  });
}

const makeKey = (name: string, idempotencyKey: string, options?: PostOptions): Promise<TestResponse<MadeKey>> =>
  post<MadeKey>(keysPath, { kind: 'secret', name }, idempotencyKey, options);

const works = async (key: string): Promise<boolean> =>
  (await tenant.request('GET', '/rooms', { key, worker: 1 })).status === 200;
const isReplay = ({ headers }: TestResponse<unknown>): boolean => headers.get('idempotent-replayed') === 'true';

async function keysNamed(name: string): Promise<string[]> {
  const { items } = done(200, await tenant.request<Keys>('GET', keysPath, { key: await adminSession(service) }));
  return items.filter((key) => key.name === name).map(({ id }) => id);
}

/** `<partition> <key>` of every record that contains a text. */
async function recordsWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const partition of await service.ctx.store.partitions('')) {
    const records = await service.ctx.store.range(partition);
    for (const { key, value } of records)
      if (`${partition} ${key} ${value}`.includes(text)) found.push(`${partition} ${key}`);
  }
  return found;
}

t.test('a key | a repetition returns its value, which works and is not in the store', async (t) => {
  const first = await makeKey('ci', 'key-once');
  const { id, secretKey } = done(201, first).key;
  t.notOk(isReplay(first));
  for (const worker of [0, 1]) {
    const again = await makeKey('ci', 'key-once', { worker });
    t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true]);
  }
  t.ok(await works(secretKey));
  t.strictSame(await keysNamed('ci'), [id]);
  t.strictSame(await recordsWith(secretKey), []);
  t.strictSame(await recordsWith('key-once'), [], 'nor is the key that decrypts the answer');
  t.not((await recordsWith('')).length, 0, 'the store has records');
});

t.test('a key | concurrent repetitions on two workers create one key', async (t) => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => makeKey('together', 'key-together', { worker: i % 2 })),
  );
  t.strictSame([...new Set(answers.map(({ status }) => status))], [201]);
  t.equal(new Set(answers.map(({ json }) => json.key.secretKey)).size, 1);
  t.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
  t.equal((await keysNamed('together')).length, 1);
});

t.test('a key | another body is refused with 409 and creates nothing', async (t) => {
  t.equal((await makeKey('this', 'key-body')).status, 201);
  const other = await makeKey('that', 'key-body');
  t.strictSame([other.status, other.headers.get('x-error-code')], [409, 'idempotency_key_reused']);
  t.strictSame(await keysNamed('that'), []);
});

t.test('a key | the same Idempotency-Key of another admin is another request', async (t) => {
  await createAdmin(service.ctx, 'second@example.com', ADMIN.password);
  const { token: session } = await login(service.ctx, { email: 'second@example.com', password: ADMIN.password });
  const first = await makeKey('shared', 'key-shared');
  const second = await makeKey('shared', 'key-shared', { session });
  t.strictSame([second.status, isReplay(second)], [201, false]);
  t.not(second.json.key.secretKey, first.json.key.secretKey);
  t.equal((await makeKey('else', 'key-shared', { session })).status, 409);
  t.equal((await makeKey('shared', 'key-shared', { session })).text, second.text);
  t.equal((await makeKey('shared', 'key-shared')).text, first.text);
  t.equal((await keysNamed('shared')).length, 2);
});

t.test('a rotation | a repetition returns the new value, even after the old key is gone', async (t) => {
  const old = done(201, await makeKey('turned', 'key-turned')).key;
  const path = `/admin/keys/${old.id}/rotate`;
  const first = await post<MadeKey>(path, { overlapSeconds: 60 }, 'rotate-once');
  const { id, secretKey } = done(201, first).key;
  t.equal((await tenant.request('DELETE', `/admin/keys/${old.id}`, { key: await adminSession(service) })).status, 200);
  const again = await post(path, { overlapSeconds: 60 }, 'rotate-once', { worker: 1 });
  t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true]);
  t.strictSame((await keysNamed('turned')).toSorted(), [old.id, id].toSorted());
  t.ok(await works(secretKey));
  t.strictSame(await recordsWith(secretKey), []);
  const late = await post(path, { overlapSeconds: 60 }, 'rotate-late');
  t.equal(late.status, 400, 'while a new request is refused');
});

t.test(
  'an environment | a repetition returns it with its signing secret, which is stored among the signing keys only',
  async (t) => {
    const first = await post<MadeEnvironment>('/admin/environments', { slug: 'new' }, 'environment-once');
    const { environment, jwtSecret, jwtKid } = done(201, first);
    const again = await post('/admin/environments', { slug: 'new' }, 'environment-once', { worker: 1 });
    t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true]);
    t.match(await listSigningKeys(service.ctx, environment), [{ kid: jwtKid, secret: jwtSecret }]);
    t.equal((await listSigningKeys(service.ctx, environment)).length, 1);
    t.strictSame(await recordsWith(jwtSecret), [`${signingKeysOf(environment.id)} ${jwtKid}`]);

    t.equal((await post('/admin/environments', { slug: 'new' }, 'environment-taken')).status, 409);
    const freed = await post('/admin/environments', { slug: 'newer' }, 'environment-taken');
    t.strictSame([freed.status, isReplay(freed)], [201, false], 'a refusal does not use its Idempotency-Key up');

    const inside = `/admin/environments/new/keys`;
    const key = await post(inside, { kind: 'secret' }, 'key-inside');
    t.equal(
      (await tenant.request('DELETE', '/admin/environments/new', { key: await adminSession(service) })).status,
      200,
    );
    t.equal(
      (await post(inside, { kind: 'secret' }, 'key-inside')).text,
      key.text,
      'the answer is still returned after the environment is gone',
    );
    t.equal((await post(inside, { kind: 'secret' }, 'key-inside-2')).status, 404);
  },
);

t.test('after 24 hours | a repetition is a new request, and the sweep has removed the old records', async (t) => {
  const records = async (): Promise<number> => (await service.ctx.store.range(ADMIN_IDEMPOTENCY)).length;
  const sweeps = storeSweeps(
    service.ctx,
    { events: { retentionHours: 24, retentionCount: 1_000 } },
    { lowestConsumerCursor: () => Infinity },
  );
  const sweep = async (): Promise<void> => sweeps.find(({ name }) => name === 'idempotency records')?.run();
  const first = done(201, await makeKey('daily', 'key-daily'));
  const before = await records();
  service.clock.advance(IDEMPOTENCY_TTL_MS - 1);
  await sweep();
  t.equal(done(201, await makeKey('daily', 'key-daily')).key.secretKey, first.key.secretKey, 'a millisecond before');
  const fresh = await makeKey('fresh', 'key-fresh');
  service.clock.advance(1);
  const second = await makeKey('daily', 'key-daily');
  t.strictSame([second.status, isReplay(second)], [201, false]);
  t.not(second.json.key.secretKey, first.key.secretKey);
  t.equal((await keysNamed('daily')).length, 2);
  t.equal(await records(), before + 1);
  await sweep();
  t.equal(await records(), 2, 'those of today');
  t.equal((await makeKey('fresh', 'key-fresh')).text, fresh.text);
  service.clock.advance(IDEMPOTENCY_TTL_MS);
  await sweep();
  t.equal(await records(), 0);
});

t.test('each of these requests is one commit, with an Idempotency-Key and without', async (t) => {
  class CountingStore extends MemoryStore {
    commits = 0;
    override transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      this.commits++;
      return super.transact(work);
    }
  }
  const store = new CountingStore();
  t.teardown(() => store.close());
  const server = await startTestServer(t, { store });
  await createAdmin(server.ctx, ADMIN.email, ADMIN.password);
  const { token: key } = await login(server.ctx, ADMIN);
  for (const headers of [{}, { 'Idempotency-Key': 'counted' }] as Record<string, string>[]) {
    const slug = Object.keys(headers).length === 0 ? 'without' : 'with';
    const counted = async <T>(path: string, body: object): Promise<T> => {
      store.commits = 0;
      const answer = done(201, await server.request<T>('POST', path, { key, body, headers }));
      t.equal(store.commits, 1, `${path} ${slug}`);
      return answer;
    };
    await counted('/admin/environments', { slug });
    const made = await counted<MadeKey>(`/admin/environments/${slug}/keys`, { kind: 'secret' });
    await counted(`/admin/keys/${made.key.id}/rotate`, {});
  }
});
