import t, { type Test } from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { callOf, foreignStatus, parametersOf, seedFor, titleOf } from '../helpers/route-calls.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { getFile, upload } from '../helpers/upload.ts';
import { isEvent } from '../helpers/socket.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

// Everything returned is scoped to the environment that the credentials identify. For every route of the
// table: the key of one environment, with the ids of another in path and body, reads and changes nothing of it.

const MARKER = 'alpha';
const service = await startService(t);
const alpha = await service.tenant('tenant-alpha');
const beta = await service.tenant('tenant-beta');

/** All that a tenant's own key reads of it: every GET of the table, with its seeds, and the log. */
async function snapshot(tenant: Tenant, seeds: Awaited<ReturnType<typeof seedFor>>): Promise<Record<string, string>> {
  const reads = apiRoutes.filter(
    (route) =>
      route.method === 'GET' &&
      (route.credential === 'secret' || route.credential === 'either') &&
      parametersOf(route.path).every((name) => name in seeds),
  );
  const taken: Record<string, string> = {};
  for (const route of reads) {
    const { path } = callOf(route, seeds);
    const { status, text } = await tenant.request('GET', path);
    taken[route.operationId] = `${status} ${withoutTimes(text)}`;
  }
  return taken;
}

/** Credentials that are minted by a read differ each time. */
const withoutTimes = (text: string): string =>
  text.replaceAll(/"(?:username|credential|password|expiresAt)":"[^"]*"/g, '""');

for (const route of apiRoutes) {
  if (route.credential === 'public') continue;
  t.test(titleOf(route), async (t) => {
    const seeds = await seedFor(route, alpha, `${MARKER} ${route.operationId}`);
    const before = await snapshot(alpha, seeds);
    const { method, path, body, headers } = callOf(route, seeds);
    const answer = await beta.request(method, path, { body, headers });
    t.ok([...foreignStatus(route), 401].includes(answer.status), `answers ${foreignStatus(route).join(' or ')}`, {
      found: answer.status,
      answer: answer.text,
    });
    holdsNothing(t, answer.text);
    t.strictSame(await snapshot(alpha, seeds), before, 'and nothing of the other environment has changed');
  });
}

/** Names that the caller sent itself may come back: what only the other environment knew may not. */
function holdsNothing(t: Test, text: string): void {
  const secrets = [
    `text of ${MARKER}`,
    `reply of ${MARKER}`,
    `fact of ${MARKER}`,
    `Name of ${MARKER}`,
    `${MARKER}-`,
    alpha.environment.id,
    alpha.environment.slug,
  ];
  t.strictSame(
    secrets.filter((secret) => text.includes(secret)),
    [],
    'not a word of the other environment',
  );
}

t.test('the same ids of the client’s choice live side by side', async (t) => {
  const tenants = [await service.tenant('side-one'), await service.tenant('side-two')];
  for (const [index, tenant] of tenants.entries()) {
    await addUser(tenant, 'ann', { name: `Ann ${index}` });
    const { id } = await addThread(tenant, 'page', { id: 'same-thread', body: `first ${index}` });
    await addComment(tenant, id, { id: 'same-comment', body: `second ${index}` });
  }
  for (const [index, tenant] of tenants.entries()) {
    t.match(done(200, await tenant.request('GET', '/users/ann')), { user: { name: `Ann ${index}` } });
    t.match(done(200, await tenant.request('GET', '/threads/same-thread')), {
      comments: [{ body: `first ${index}` }, { id: 'same-comment', body: `second ${index}` }],
    });
    t.match(done(200, await tenant.request('GET', '/rooms')), { items: [{ roomId: 'page', threadCount: 1 }] });
  }
  await tenants[0]?.request('DELETE', '/comments/same-comment');
  t.equal(
    (await tenants[1]?.request('PATCH', '/comments/same-comment', { body: { body: 'still there' } }))?.status,
    200,
  );
});

t.test('an Idempotency-Key of one environment says nothing in another', async (t) => {
  const call = { body: { userId: 'ann', body: 'Hi' }, headers: { 'Idempotency-Key': 'shared' } };
  const ids = new Set<string>();
  for (const slug of ['keyed-one', 'keyed-two']) {
    const tenant = await service.tenant(slug);
    await addUser(tenant, 'ann');
    const answer = await tenant.request<{ thread: { id: string } }>('POST', '/rooms/page/threads', call);
    t.equal(answer.headers.get('idempotent-replayed'), null);
    ids.add(done(201, answer).thread.id);
  }
  t.equal(ids.size, 2);
});

t.test('a cursor of one environment is invalid in another', async (t) => {
  for (const tenant of [alpha, beta]) await addUser(tenant, 'ann');
  for (const tenant of [alpha, alpha, beta, beta]) {
    await addThread(tenant, 'paged');
    await addUser(tenant, `one more ${tenant.environment.id}`);
  }
  await addThread(alpha, 'paged too');
  for (const path of ['/rooms/paged/threads', '/rooms', '/users']) {
    const { nextCursor = '' } = done(200, await alpha.request<{ nextCursor?: string }>('GET', `${path}?limit=1`));
    t.not(nextCursor, '');
    t.match(
      await beta.request('GET', `${path}?limit=1&cursor=${nextCursor}`),
      { status: 400, json: { error: 'Invalid cursor' } },
      path,
    );
  }
});

t.test('a file of one environment is neither served nor linked in another', async (t) => {
  await addUser(beta, 'ann');
  const file = await upload(alpha, { bytes: Buffer.from('not really sound'), type: 'audio/mpeg' });
  t.equal(file.status, 200);
  const path = new URL(file.json.url).pathname;
  t.equal((await getFile(alpha, path)).status, 200);
  t.equal((await getFile(beta, path)).status, 403);
  t.equal((await getFile(beta, path.replace(alpha.environment.id, beta.environment.id))).status, 404);
  const answer = await beta.request('POST', '/rooms/page/threads', {
    body: { userId: 'ann', body: 'Hi', attachmentIds: [file.json.id] },
  });
  t.equal(answer.status, 400);
  t.equal((await getFile(alpha, path)).status, 200, 'and it is still there');
});

t.test('a socket is told nothing of another environment, and a browser writes nothing into it', async (t) => {
  const watcher = await beta.join({ userId: 'watcher' });
  const seeds = await seedFor({ path: '' }, alpha, MARKER);
  for (const [type, data] of [
    ['comment.create', { threadId: seeds['threadId'], body: 'Hi' }],
    ['comment.update', { commentId: seeds['commentId'], body: 'Hi' }],
    ['comment.delete', { commentId: seeds['commentId'] }],
    ['thread.resolve', { threadId: seeds['threadId'] }],
    ['thread.reopen', { threadId: seeds['threadId'] }],
  ] as const) {
    const { error } = await watcher.request(type, data);
    t.match(error, { code: /^(?:thread|comment)_not_found$/ }, type);
  }
  await addThread(beta, 'page', { body: 'the end' });
  await watcher.until(() => watcher.frames.some((frame) => JSON.stringify(frame).includes('the end')));
  t.equal(watcher.frames.filter(isEvent).length, 1);
  holdsNothing(t, JSON.stringify(watcher.frames));
  t.match(done(200, await alpha.request('GET', `/threads/${seeds['threadId']}`)), {
    thread: { resolved: false, commentCount: 2 },
  });
  await watcher.close();
});

t.test('the log and its stream are of one environment', async (t) => {
  const since = done(200, await beta.request<{ seq: number }>('GET', '/events')).seq;
  const stream = new AbortController();
  const answer = await fetch(`${service.urls[0]}/api/v1/events?since=${since}`, {
    headers: { Accept: 'text/event-stream', Authorization: `Bearer ${beta.secretKey}` },
    signal: stream.signal,
  });
  await addThread(alpha, 'page', { userId: 'ann', body: `text of ${MARKER}` });
  await addThread(beta, 'page', { userId: 'ann', body: 'the end' });
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes('the end')) break;
  }
  stream.abort();
  holdsNothing(t, text);
  holdsNothing(t, (await beta.request('GET', '/events?limit=1000')).text);
});
