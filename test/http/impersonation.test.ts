import t from 'tap';
import { wav } from '../fixtures/media.ts';
import { startService } from '../helpers/service.ts';
import { formOf, getFile, upload } from '../helpers/upload.ts';
import { addUser, type CreatedThread, done, type Failure } from '../helpers/writer.ts';

// A secret key impersonates the user in `userId`.

const service = await startService(t);
const tenant = await service.tenant('acting');
for (const id of ['ann', 'bob']) await addUser(tenant, id);
const sound = { bytes: wav(0.1), type: 'audio/wav', name: 'hello.wav' };

async function uploadFor(
  query: string,
  key = tenant.secretKey,
): Promise<{ status: number; json: { id: string; url: string } & Failure }> {
  const answer = await fetch(`${service.urls[0]}/api/v1/upload${query}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}` },
    body: formOf(sound),
  });
  return { status: answer.status, json: (await answer.json()) as { id: string; url: string } & Failure };
}

async function fetchFor(url: string, query: string, key = tenant.secretKey): Promise<number> {
  const answer = await fetch(`${url}${query}`, { headers: { Authorization: `Bearer ${key}` } });
  await answer.arrayBuffer();
  return answer.status;
}

t.test('an upload belongs to the user for whom it was made, who can attach it', async (t) => {
  const { status, json } = await uploadFor('?userId=ann');
  t.equal(status, 200, json.error);
  const bob = await tenant.join({ userId: 'bob' });
  t.equal(
    (await bob.request('thread.create', { roomId: 'room', body: '', attachmentIds: [json.id] })).error?.code,
    'unknown_attachment',
  );
  const ann = await tenant.join({ userId: 'ann' });
  t.equal((await ann.request('thread.create', { roomId: 'room', body: '', attachmentIds: [json.id] })).type, 'ok');
  t.equal(await fetchFor(json.url, '?userId=bob'), 200);
  t.equal((await getFile(tenant, json.url)).status, 200, 'with the headers of a browser as before');
});

t.test('a shared cache is told that the file is for the key alone', async (t) => {
  const { json } = await uploadFor('?userId=ann');
  const answer = await fetch(`${json.url}?userId=ann`, { headers: { Authorization: `Bearer ${tenant.secretKey}` } });
  await answer.arrayBuffer();
  t.equal(answer.headers.get('vary'), 'X-Service-Key, X-Service-Token, Authorization, Origin');
});

t.test('without userId the headers of a browser are required', async (t) => {
  const hint =
    'add ?userId=<user> for the user for whom the key acts, or send the publishable key in X-Service-Key and the token of a user in X-Service-Token';
  t.match(await uploadFor(''), {
    status: 401,
    json: { error: `X-Service-Key is missing: a secret key was sent, but no user; ${hint}` },
  });
  t.match(await uploadFor('', 'sk_unknown'), {
    status: 401,
    json: {
      error: `X-Service-Key is missing: Authorization was sent, but without a valid secret key and a user; with a valid key, ${hint}`,
    },
  });
  const { json } = await upload(tenant, sound);
  const fetched = await fetch(json.url, { headers: { Authorization: `Bearer ${tenant.secretKey}` } });
  t.equal(fetched.headers.get('x-error-code'), 'missing_credentials');
  t.strictSame(await fetched.json(), {
    error: `X-Service-Key is missing: a secret key was sent, but no user; ${hint}`,
  });
  const neither = await fetch(json.url);
  t.match(await neither.json(), { error: /^X-Service-Key is missing: send the publishable key in it/ });
  t.equal(await fetchFor(json.url, ''), 401);
  t.equal(await fetchFor(json.url, '?thumb=1'), 401);
});

t.test('the key must be valid, and the user known', async (t) => {
  t.match(await uploadFor('?userId=ann', 'sk_unknown'), { status: 401, json: { error: 'Invalid API key' } });
  t.match(await uploadFor('?userId=ann', tenant.publishableKey), { status: 401 });
  t.match(await uploadFor('?userId=eve'), { status: 400, json: { error: /^Unknown user: eve\./ } });
  t.match(await uploadFor('?userId='), { status: 400, json: { error: /^userId must be 1 to 128 characters/ } });
  const { json } = await upload(tenant, sound);
  const other = await service.tenant('other');
  await addUser(other, 'ann');
  t.equal(await fetchFor(json.url, '?userId=ann', other.secretKey), 403, 'a file of another environment');
});

t.test('the scope and the rooms of the key apply', async (t) => {
  const reader = (await tenant.newKey({ scope: 'read' })).value;
  const moderator = (await tenant.newKey({ scope: 'moderate' })).value;
  for (const key of [reader, moderator]) t.match(await uploadFor('?userId=ann', key), { status: 403 });
  const elsewhere = (await tenant.newKey({ rooms: 'elsewhere*' })).value;
  const { json } = await uploadFor('?userId=ann', elsewhere);
  t.equal(await fetchFor(json.url, '?userId=ann', elsewhere), 200, 'a file that is not in a room yet');
  done<{ thread: CreatedThread }>(
    201,
    await tenant.request('POST', '/rooms/room/threads', {
      body: { userId: 'ann', body: 'Hi', attachmentIds: [json.id] },
    }),
  );
  t.equal(await fetchFor(json.url, '?userId=ann', elsewhere), 403, 'a file of a room that the key does not reach');
  t.equal(await fetchFor(json.url, '?userId=ann', reader), 200);
});

t.test('a backend may name the user for whom it resolves, edits and deletes', async (t) => {
  const { thread } = done<{ thread: CreatedThread }>(
    201,
    await tenant.request('POST', '/rooms/acts/threads', { body: { userId: 'ann', body: 'Hi' } }),
  );
  const commentId = thread.comments[0]?.id ?? '';
  const reaction = done<{ reaction: { id: string } }>(
    201,
    await tenant.request('POST', `/comments/${commentId}/reactions`, { body: { userId: 'ann', emoji: '👍' } }),
  ).reaction;
  const resolvedBy = async () =>
    done<{ thread: { resolvedBy: string | null } }>(200, await tenant.request('GET', `/threads/${thread.id}`)).thread
      .resolvedBy;
  done(200, await tenant.request('PATCH', `/threads/${thread.id}`, { body: { resolved: true } }));
  t.equal(await resolvedBy(), null);
  done(200, await tenant.request('PATCH', `/threads/${thread.id}`, { body: { resolved: false, userId: 'bob' } }));
  done(200, await tenant.request('PATCH', `/threads/${thread.id}`, { body: { resolved: true, userId: 'bob' } }));
  t.equal(await resolvedBy(), 'bob');
  const edited = done<{ comment: object }>(
    200,
    await tenant.request('PATCH', `/comments/${commentId}`, { body: { body: 'Hello', userId: 'bob' } }),
  );
  t.match(edited.comment, { userId: 'ann', body: 'Hello' }, 'the author stays');
  done(200, await tenant.request('DELETE', `/reactions/${reaction.id}?userId=bob`));
  t.match(await tenant.request('PATCH', `/threads/${thread.id}`, { body: { resolved: true, userId: 'eve' } }), {
    status: 400,
    json: { error: /^Unknown user: eve\./ },
  });
  for (const path of [`/threads/${thread.id}`, `/comments/${commentId}`]) {
    t.match(await tenant.request('DELETE', `${path}?userId=`), {
      status: 400,
      json: { error: /^userId must be 1 to 128 characters/ },
    });
    t.match(await tenant.request('DELETE', `${path}?userId=eve`), { status: 400 });
  }
  done(200, await tenant.request('DELETE', `/comments/${commentId}?userId=bob`));
  const { items } = done<{ items: { type: string; roomId: string; actor: object }[] }>(
    200,
    await tenant.request('GET', '/events?limit=1000'),
  );
  const actors = items.filter(({ roomId }) => roomId === 'acts').map(({ type, actor }) => [type, actor]);
  const by = (userId: string | null) => ({ userId, via: 'rest' });
  t.strictSame(actors, [
    ['thread.created', by('ann')],
    ['reaction.created', by('ann')],
    ['thread.resolved', by(null)],
    ['thread.reopened', by('bob')],
    ['thread.resolved', by('bob')],
    ['comment.updated', by('bob')],
    ['reaction.deleted', by('bob')],
    ['comment.deleted', by('bob')],
    ['thread.deleted', by('bob')],
  ]);
});

t.test('a user acts for nobody else', async (t) => {
  const bob = await tenant.join({ userId: 'bob' });
  const { thread } = done<{ thread: CreatedThread }>(
    201,
    await tenant.request('POST', '/rooms/own/threads', { body: { userId: 'bob', body: 'Hi' } }),
  );
  for (const userId of ['ann', 5])
    t.equal(
      (await bob.request('thread.update', { threadId: thread.id, resolved: userId === 'ann', userId })).type,
      'ok',
    );
  t.equal((await bob.request('thread.update', { threadId: thread.id, resolved: true, userId: 'ann' })).type, 'ok');
  t.match(done(200, await tenant.request('GET', `/threads/${thread.id}`)), { thread: { resolvedBy: 'bob' } });
});

t.test('the quotas of the user count', async (t) => {
  const small = await service.tenant('small', { quotas: { userUploadMb: 1 } });
  await addUser(small, 'ann');
  const big = { ...sound, bytes: wav(50) };
  const send = async (): Promise<number> => {
    const answer = await fetch(`${service.urls[0]}/api/v1/upload?userId=ann`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${small.secretKey}` },
      body: formOf(big),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  const statuses: number[] = [];
  for (let i = 0; i < 4 && statuses.at(-1) !== 413; i++) statuses.push(await send());
  t.equal(statuses[0], 200);
  t.equal(statuses.at(-1), 413);
});
