import t, { type Test } from 'tap';
import { verifyChain } from '../../src/domain/audit/verify.ts';
import { sweepItems } from '../../src/domain/moderation/sweep.ts';
import { moderationIndexOf, moderationOf, reportsOf } from '../../src/domain/records/partitions.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { ModerationItem, Report } from '../../src/model/moderation.ts';
import { picture } from '../fixtures/media.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { callOf, credentialsFor, seedFor } from '../helpers/route-calls.ts';
import { type Service, startService, type Tenant } from '../helpers/service.ts';
import { upload } from '../helpers/upload.ts';
import { addComment, addThread, addUser, type CreatedThread, done } from '../helpers/writer.ts';

type HeldComment = Comment & { readonly status?: 'held' };
type ItemView = Omit<ModerationItem, 'reports'> & {
  readonly before: Comment | null;
  readonly reports: readonly Report[];
  readonly reportCount: number;
};

const png = (size: number): Promise<Buffer> => picture(size, size).png().toBuffer();

const DAY_MS = 24 * 3_600_000;

async function start(t: Test): Promise<{ service: Service; tenant: Tenant; thread: CreatedThread }> {
  const service = await startService(t, { filters: holdingFilters });
  const tenant = await service.tenant('dev');
  for (const userId of ['ann', 'bob', 'mod']) await addUser(tenant, userId);
  return { service, tenant, thread: await addThread(tenant, 'room') };
}

const queueOf = async (tenant: Tenant, state = 'held'): Promise<ItemView[]> =>
  done(200, await tenant.request<{ items: ItemView[] }>('GET', `/moderation?state=${state}`)).items;
const onlyItem = async (tenant: Tenant): Promise<ItemView> => {
  const [item, ...others] = await queueOf(tenant);
  if (item === undefined || others.length > 0) throw new Error(`${others.length + 1} items are held`);
  return item;
};
const approve = (tenant: Tenant, { id }: { id: string }) =>
  tenant.request<{ state: string; error: string }>('POST', `/moderation/${id}/approve`);
const reject = (tenant: Tenant, { id }: { id: string }, reason = 'Not here.') =>
  tenant.request<{ state: string; error: string }>('POST', `/moderation/${id}/reject`, { body: { reason } });
const commentsOf = async (tenant: Tenant, threadId: string): Promise<HeldComment[]> =>
  done(200, await tenant.request<{ items: HeldComment[] }>('GET', `/threads/${threadId}/comments`)).items;

t.test(
  'held content is found through no route and no socket, except those for moderators and its author',
  async (t) => {
    const { service, tenant, thread } = await start(t);
    const bob = await tenant.join({ userId: 'bob' });
    const reader = { Authorization: `Bearer ${(await tenant.newKey({ scope: 'read' })).value}` };
    const stream = await fetch(`${service.urls[0]}/api/v1/events`, {
      headers: { ...reader, Accept: 'text/event-stream' },
    });
    const { json: file } = await upload(tenant, { bytes: await png(20), type: 'image/png' });

    const held = await addComment(tenant, thread.id, {
      userId: 'ann',
      body: `${HELD_TEXT} comment`,
      attachmentIds: [file.id],
      mentions: ['bob'],
      metadata: { note: HELD_TEXT },
    });
    t.equal((held as HeldComment).status, 'held');
    const heldThread = await addThread(tenant, 'fresh room', {
      userId: 'ann',
      body: `${HELD_TEXT} thread`,
      position: { x: 0.5, y: 0.5, selector: HELD_TEXT },
    });
    t.equal((heldThread as { status?: string }).status, 'held');
    const edited = done(
      200,
      await tenant.request<{ comment: HeldComment }>('PATCH', `/comments/${thread.comments[0]?.id}`, {
        body: { body: `${HELD_TEXT} edit` },
      }),
    ).comment;
    t.strictSame([edited.status, edited.id], ['held', thread.comments[0]?.id]);

    const seen: string[] = [];
    const markers = [HELD_TEXT, held.id, heldThread.id, file.id, 'fresh room'];
    const allowed = new Set(['moderation.list', 'moderation.get', 'users.listHeld', 'admin.listAudit', 'events.list']);
    const seeds = {
      ...(await seedFor({ path: '' }, tenant)),
      threadId: thread.id,
      roomId: 'room',
      commentId: thread.comments[0]?.id ?? '',
      userId: 'ann',
    };
    for (const route of apiRoutes) {
      if (route.method !== 'GET' || allowed.has(route.operationId)) continue;
      const own = {
        ...seeds,
        ...(await seedFor(route, tenant)),
        threadId: thread.id,
        roomId: 'room',
        commentId: seeds.commentId,
        userId: 'ann',
      };
      for (const search of [
        '',
        '?include=comments',
        '?include=content',
        '?sort=updatedAt',
        '?participantId=ann',
        '?mentions=bob',
        '?prefix=fresh',
        '?q=ann',
      ]) {
        const { path } = callOf(route, own);
        const { text, status } = await tenant.request('GET', path + search, {
          headers: await credentialsFor(route, tenant),
        });
        seen.push(
          ...markers
            .filter((marker) => text.includes(marker))
            .map((marker) => `${route.operationId}${search} (${status}) shows ${marker}`),
        );
      }
    }
    const log = (await tenant.request('GET', '/events', { headers: reader })).text;
    seen.push(
      ...markers
        .filter((marker) => log.includes(marker))
        .map((marker) => `the log for a key of the scope read shows ${marker}`),
    );
    for (const [path, status] of [
      [`/threads/${heldThread.id}`, 404],
      [`/threads/${heldThread.id}/comments`, 404],
    ] as const) {
      t.equal((await tenant.request('GET', path)).status, status, path);
    }
    t.match(
      (await tenant.request('GET', '/rooms/fresh%20room')).json,
      { room: { threadCount: 0, createdAt: null }, threads: [] },
      'as a room that nobody has used',
    );
    for (const [method, path, body] of [
      ['GET', `/comments/${held.id}`, undefined],
      ['POST', `/comments/${held.id}/reactions`, { userId: 'bob', emoji: '👍' }],
      ['DELETE', `/comments/${'x'.repeat(1_500)}`, undefined],
      ['PATCH', `/comments/${'x'.repeat(1_500)}`, { body: 'x' }],
      ['DELETE', `/threads/${'x'.repeat(1_500)}`, undefined],
      ['POST', `/comments/${held.id}/report`, { reason: 'x' }],
      ['PATCH', `/threads/${heldThread.id}`, { resolved: true }],
    ] as const)
      t.equal(
        (await tenant.request(method, path, body === undefined ? {} : { body })).status,
        404,
        `${method} ${path}`,
      );
    for (const [type, data] of [
      ['comment.update', { commentId: held.id, body: 'x' }],
      ['comment.delete', { commentId: held.id }],
    ] as const) {
      t.match(await bob.request(type, data), { type: 'error', error: { code: 'comment_not_found' } }, type);
    }

    for (const [type, data] of [
      ['room.get', { roomId: 'room', includeComments: true }],
      ['thread.get', { threadId: thread.id }],
    ] as const) {
      const reply = JSON.stringify(await bob.request(type, data));
      seen.push(...markers.filter((marker) => reply.includes(marker)).map((marker) => `${type} shows ${marker}`));
    }
    t.match(await bob.request('thread.get', { threadId: heldThread.id }), {
      type: 'error',
      error: { code: 'thread_not_found' },
    });
    const last = await addComment(tenant, thread.id, { body: 'visible' });
    await bob.until(() => bob.frames.some((frame) => JSON.stringify(frame).includes(last.id)));
    const frames = JSON.stringify(bob.frames);
    seen.push(...markers.filter((marker) => frames.includes(marker)).map((marker) => `a socket receives ${marker}`));
    const chunks = stream.body?.getReader();
    let sent = '';
    while (!sent.includes(last.id)) sent += Buffer.from((await chunks?.read())?.value ?? []).toString();
    await chunks?.cancel();
    seen.push(
      ...markers.filter((marker) => sent.includes(marker)).map((marker) => `server-sent events contain ${marker}`),
    );
    t.strictSame(seen, []);

    const get = async (userId: string, role: 'member' | 'moderator' = 'member', search = '') =>
      (
        await tenant.request('GET', `//files/${tenant.environment.id}/${file.id}${search}`, {
          headers: { Authorization: '', ...(await tenant.userHeaders({ userId, role })) },
        })
      ).status;
    t.strictSame(
      [await get('bob'), await get('bob', 'member', '?thumb=1'), await get('ann'), await get('mod', 'moderator')],
      [404, 404, 200, 200],
      'its files are served to the uploader and to moderators',
    );

    const own = await tenant.request<{ items: ItemView[] }>('GET', '/users/ann/held', {
      headers: { Authorization: '', ...(await tenant.userHeaders({ userId: 'ann' })) },
    });
    t.strictSame(
      own.json.items.map(({ kind, state }) => `${kind} ${state}`),
      ['comment held', 'thread held', 'edit held'],
    );
    t.notMatch(own.text, /it says so|plugin/, 'why is for moderators');
    t.equal(
      (
        await tenant.request('GET', '/users/ann/held', {
          headers: { Authorization: '', ...(await tenant.userHeaders({ userId: 'bob' })) },
        })
      ).status,
      403,
    );
  },
);

t.test(
  'the author hears on every socket what is held, changed, withdrawn and decided, as moderators do, and nobody else',
  async (t) => {
    const { tenant, thread } = await start(t);
    const { json: file } = await upload(tenant, { bytes: await png(20), type: 'image/png' });
    const sockets = {
      ann: await tenant.join({ userId: 'ann' }),
      mod: await tenant.join({ userId: 'mod', role: 'moderator' }),
      away: await tenant.join({ userId: 'mod', role: 'moderator', rooms: ['other'] }),
      bob: await tenant.join({ userId: 'bob' }),
    };
    const { ann, mod } = sockets;
    const heard = (socket: typeof ann) =>
      socket.frames
        .filter(({ type }) => String(type).startsWith('moderation.'))
        .map(({ type, data }) => [
          type,
          (data as { comment?: Comment; cause?: string }).comment?.body ?? (data as { cause?: string }).cause,
        ]);

    const held = await addComment(tenant, thread.id, { userId: 'ann', body: HELD_TEXT, attachmentIds: [file.id] });
    t.match(await ann.request('comment.update', { commentId: held.id, body: 'better' }), {
      type: 'ok',
      data: {
        comment: { id: held.id, body: 'better', status: 'held', attachments: [{ id: file.id }], editedAt: String },
      },
    });
    t.match(
      await ann.request('comment.update', { commentId: held.id, body: 'better' }),
      { type: 'ok' },
      'which changes nothing',
    );
    t.match(await onlyItem(tenant), { comment: { body: 'better' }, reason: 'it says so' }, 'and stays held');
    t.match(await ann.request('thread.get', { threadId: thread.id }), {
      data: {
        thread: { commentCount: 1 },
        comments: [{ body: 'Hello' }, { id: held.id, status: 'held', body: 'better' }],
      },
    });
    t.match(await ann.request('comment.delete', { commentId: held.id }), { type: 'ok', data: { deleted: true } });
    t.equal(
      (
        await tenant.request('GET', `//files/${tenant.environment.id}/${file.id}`, {
          headers: { Authorization: '', ...(await tenant.userHeaders({ userId: 'ann' })) },
        })
      ).status,
      404,
      'its file is gone',
    );

    await addComment(tenant, thread.id, { userId: 'ann', body: `${HELD_TEXT} 2` });
    done(200, await approve(tenant, await onlyItem(tenant)));
    await addComment(tenant, thread.id, { userId: 'ann', body: `${HELD_TEXT} 3` });
    done(200, await tenant.request('DELETE', `/threads/${thread.id}`));
    const expected = [
      ['moderation.held', HELD_TEXT],
      ['moderation.held', 'better'],
      ['moderation.rejected', 'withdrawn'],
      ['moderation.held', `${HELD_TEXT} 2`],
      ['moderation.approved', undefined],
      ['moderation.held', `${HELD_TEXT} 3`],
      ['moderation.rejected', 'deleted'],
    ];
    for (const socket of Object.values(sockets))
      await socket.until(() => socket === sockets.away || socket.frames.some(({ type }) => type === 'thread.deleted'));
    t.strictSame(heard(ann), expected);
    t.strictSame(heard(mod), expected);
    t.strictSame([heard(sockets.bob), heard(sockets.away)], [[], []]);
    t.match(
      ann.frames.find(({ type }) => type === 'moderation.held'),
      {
        userId: 'ann',
        roomId: 'room',
        data: {
          comment: { status: 'held', attachments: [{ url: /^http:.*\/files\// }] },
          thread: null,
          replaces: null,
        },
      },
    );
    t.notMatch(JSON.stringify([ann.frames, mod.frames]), /it says so/, 'why a plugin held it is in the queue only');
  },
);

t.test('approving creates the content as if just now, under its id, with its event', async (t) => {
  const { service, tenant, thread } = await start(t);
  const socket = await tenant.join({ userId: 'bob' });
  const { json: file } = await upload(tenant, { bytes: await png(20), type: 'image/png' });
  const held = await addComment(tenant, thread.id, { body: HELD_TEXT, id: 'chosen-id-1', attachmentIds: [file.id] });
  service.clock.advance(60_000);
  const later = await addComment(tenant, thread.id, { body: 'later' });
  service.clock.advance(60_000);
  t.strictSame(
    (
      await tenant.request('POST', `/threads/${thread.id}/comments`, {
        body: { userId: 'ann', body: 'x', id: 'chosen-id-1' },
      })
    ).status,
    409,
    'the id is taken',
  );
  const item = await onlyItem(tenant);
  t.match(item, {
    kind: 'comment',
    state: 'held',
    plugin: 'rules',
    reason: 'it says so',
    userId: 'ann',
    comment: { body: HELD_TEXT },
  });
  t.strictSame((await approve(tenant, item)).json, { id: item.id, state: 'approved' });
  t.strictSame((await approve(tenant, item)).json, { id: item.id, state: 'approved' }, 'again, without another effect');
  t.match(await reject(tenant, item), { status: 409, json: { error: /was approved at/ } });
  const comments = await commentsOf(tenant, thread.id);
  t.strictSame(
    comments.map(({ id }) => id),
    [thread.comments[0]?.id, later.id, held.id],
    'in the order of creation',
  );
  const approved = comments.at(-1);
  t.ok((approved?.createdAt ?? '') > later.createdAt);
  t.notOk(JSON.stringify(approved).includes('status'));
  const frame = await socket.until(() =>
    socket.frames.find((sent) => sent.type === 'comment.created' && JSON.stringify(sent).includes(held.id)),
  );
  t.match(frame, { data: { id: held.id, body: HELD_TEXT, createdAt: approved?.createdAt } });
  const { status } = await tenant.request('GET', `//files/${tenant.environment.id}/${file.id}`, {
    headers: { Authorization: '', ...(await tenant.userHeaders({ userId: 'bob' })) },
  });
  t.equal(status, 200, 'its file is served to all now');
  done(200, await tenant.request('PATCH', `/comments/${held.id}`, { body: { body: 'edited' } }));
  done(201, await tenant.request('POST', `/comments/${held.id}/reactions`, { body: { userId: 'bob', emoji: '👍' } }));
  done(200, await tenant.request('DELETE', `/comments/${held.id}`));

  const heldThread = await addThread(tenant, 'fresh', { body: HELD_TEXT, mentions: ['bob'], metadata: { a: 1 } });
  done(200, await approve(tenant, await onlyItem(tenant)));
  const got = done(
    200,
    await tenant.request<{ thread: { metadata: object }; comments: Comment[] }>('GET', `/threads/${heldThread.id}`),
  );
  t.match(got, {
    thread: { metadata: { a: 1 } },
    comments: [{ id: heldThread.comments[0]?.id, body: HELD_TEXT, mentions: ['bob'] }],
  });
  t.match(
    await socket.until(() =>
      socket.frames.find((sent) => sent.type === 'thread.created' && JSON.stringify(sent).includes(heldThread.id)),
    ),
    { roomId: 'fresh' },
  );
});

t.test('the old text stays visible while an edit is held, and a later edit replaces the held one', async (t) => {
  const { tenant, thread } = await start(t);
  const id = thread.comments[0]?.id ?? '';
  const edit = async (body: string, attachmentIds: string[] = []) =>
    done(
      200,
      await tenant.request<{ comment: HeldComment }>('PATCH', `/comments/${id}`, { body: { body, attachmentIds } }),
    ).comment;
  const files = await Promise.all(
    [20, 21].map(async (size) => (await upload(tenant, { bytes: await png(size), type: 'image/png' })).json.id),
  );
  const [first = '', second = ''] = files;
  await edit(`${HELD_TEXT} 1`, [first]);
  await edit(`${HELD_TEXT} 2`, [first, second, first]);
  t.match(await onlyItem(tenant), { kind: 'edit', before: { body: 'Hello' }, comment: { body: `${HELD_TEXT} 2` } });
  t.match(await commentsOf(tenant, thread.id), [{ body: 'Hello', attachments: [] }]);
  done(200, await approve(tenant, await onlyItem(tenant)));
  t.match(await commentsOf(tenant, thread.id), [
    { body: `${HELD_TEXT} 2`, attachments: [{ id: first }, { id: second }], editedAt: String },
  ]);
  t.equal(
    (await commentsOf(tenant, thread.id))[0]?.attachments.length,
    2,
    'a file that was named twice is linked once',
  );
  await edit(`${HELD_TEXT} 3`, [second]);
  await edit('fine', [second]);
  t.strictSame(await queueOf(tenant), [], 'an edit that passes withdraws the held one');
  t.match(await commentsOf(tenant, thread.id), [{ body: 'fine', attachments: [{ id: second }] }]);
});

t.test('an edit of a held comment removes the files that it leaves out', async (t) => {
  const { tenant, thread } = await start(t);
  const [first = '', second = ''] = await Promise.all(
    [20, 21].map(async (size) => (await upload(tenant, { bytes: await png(size), type: 'image/png' })).json.id),
  );
  const held = await addComment(tenant, thread.id, { body: HELD_TEXT, attachmentIds: [first, second] });
  const body = { body: `${HELD_TEXT} 2`, attachmentIds: [second] };
  done(200, await tenant.request('PATCH', `/comments/${held.id}`, { body }));
  t.match(await onlyItem(tenant), { comment: { attachments: [{ id: second }] } });
  const headers = { Authorization: '', ...(await tenant.userHeaders({ userId: 'mod', role: 'moderator' })) };
  const statusOf = async (id: string): Promise<number> =>
    (await tenant.request('GET', `//files/${tenant.environment.id}/${id}`, { headers })).status;
  t.strictSame([await statusOf(first), await statusOf(second)], [404, 200]);
});

t.test('rejecting tells the author why, and removes the files', async (t) => {
  const { service, tenant, thread } = await start(t);
  const { json: file } = await upload(tenant, { bytes: await png(20), type: 'image/png' });
  await addComment(tenant, thread.id, { body: HELD_TEXT, attachmentIds: [file.id] });
  const item = await onlyItem(tenant);
  const [author, other] = [await tenant.join({ userId: 'ann' }), await tenant.join({ userId: 'bob' })];
  t.match(await tenant.request('POST', `/moderation/${item.id}/reject`, { body: {} }), {
    status: 400,
    json: { error: 'reason is required' },
  });
  t.strictSame((await reject(tenant, item, 'No advertising.')).json.state, 'rejected');
  t.match(await approve(tenant, item), { status: 409, json: { error: /was rejected/ } });
  const rejection = await author.until(() => author.frames.find(({ type }) => type === 'moderation.rejected'));
  t.match(rejection, {
    userId: 'ann',
    actor: { userId: null },
    data: { itemId: item.id, kind: 'comment', threadId: thread.id, userId: 'ann', reason: 'No advertising.' },
  });
  await addComment(tenant, thread.id, { body: 'later', userId: 'bob' });
  await other.until(() => other.frames.find(({ type }) => type === 'comment.created'));
  t.notOk(
    other.frames.some(({ type }) => type === 'moderation.rejected'),
    'the other user is not told',
  );
  const own = async () => done(200, await tenant.request<{ items: ItemView[] }>('GET', '/users/ann/held')).items;
  t.match(await own(), [
    { state: 'rejected', rejection: 'No advertising.', comment: { body: HELD_TEXT, attachments: [] } },
  ]);
  t.equal(
    (
      await tenant.request('GET', `//files/${tenant.environment.id}/${file.id}`, {
        headers: { Authorization: '', ...(await tenant.userHeaders({ userId: 'ann' })) },
      })
    ).status,
    404,
  );
  t.strictSame((await commentsOf(tenant, thread.id)).length, 2);
  t.match(await queueOf(tenant, 'decided'), [{ id: item.id, decidedBy: { kind: 'key' } }]);
  service.clock.advance(31 * DAY_MS);
  t.equal(await sweepItems(service.ctx, tenant.environment.id), 1);
  t.strictSame([await own(), await queueOf(tenant, 'decided')], [[], []], 'for 30 days');
  t.strictSame(await service.ctx.store.range(moderationIndexOf(tenant.environment.id)), [], 'nothing is left');
});

t.test('of concurrent decisions one counts', async (t) => {
  const { service, tenant, thread } = await start(t);
  for (let round = 0; round < 5; round++) {
    await addComment(tenant, thread.id, { body: `${HELD_TEXT} ${round}` });
    const item = await onlyItem(tenant);
    const answers = await Promise.all([
      approve(tenant, item),
      reject(tenant, item),
      approve(tenant, item),
      reject(tenant, item),
    ]);
    const states = new Set(answers.filter(({ status }) => status === 200).map(({ json }) => json.state));
    t.equal(states.size, 1);
    t.ok(answers.every(({ status }) => status === 200 || status === 409));
    const written = (await commentsOf(tenant, thread.id)).filter(({ body }) => body === `${HELD_TEXT} ${round}`);
    t.equal(written.length, states.has('approved') ? 1 : 0);
  }
  t.strictSame((await verifyChain(service.ctx, tenant.environment.id)).faults, []);
});

t.test('the queue is for moderators, within their rooms', async (t) => {
  const { tenant, thread } = await start(t);
  await addComment(tenant, thread.id, { body: HELD_TEXT });
  const item = await onlyItem(tenant);
  const as = async (headers: Record<string, string>) => {
    const list = await tenant.request<{ items: unknown[] }>('GET', '/moderation', { headers });
    const one = await tenant.request('GET', `/moderation/${item.id}`, { headers });
    return [list.status, list.json.items?.length, one.status];
  };
  const bearer = async (fields: object) => ({ Authorization: `Bearer ${(await tenant.newKey(fields)).value}` });
  const user = async (role: 'member' | 'moderator', rooms?: string[]) => ({
    Authorization: '',
    ...(await tenant.userHeaders({ userId: 'mod', role, ...(rooms === undefined ? {} : { rooms }) })),
  });
  const inRoom = async (roomId: string) =>
    done(200, await tenant.request<{ items: unknown[] }>('GET', `/moderation?roomId=${roomId}`)).items.length;
  t.strictSame([await inRoom('room'), await inRoom('other')], [1, 0], 'of one room');
  t.strictSame(await as(await bearer({ scope: 'moderate' })), [200, 1, 200]);
  t.strictSame(await as(await bearer({ scope: 'read' })), [403, undefined, 403]);
  t.strictSame(await as(await bearer({ scope: 'moderate', rooms: 'other' })), [200, 0, 403]);
  t.strictSame(await as(await user('moderator')), [200, 1, 200]);
  t.strictSame(await as(await user('moderator', ['other'])), [200, 0, 403]);
  t.strictSame(await as(await user('member')), [403, undefined, 403]);
  t.equal(
    (await tenant.request('POST', `/moderation/${item.id}/approve`, { headers: await user('member') })).status,
    403,
  );
  t.equal(
    (await tenant.request('POST', `/moderation/${item.id}/approve`, { headers: await user('moderator') })).status,
    200,
  );
});

t.test('the files of held content are served within the rooms of the credential only', async (t) => {
  const { service, tenant, thread } = await start(t);
  const fileOf = async (): Promise<{ id: string }> =>
    (await upload(tenant, { bytes: await png(20), type: 'image/png' })).json;
  const [ofComment, ofThread, ofEdit] = [await fileOf(), await fileOf(), await fileOf()];
  await addComment(tenant, thread.id, { body: HELD_TEXT, attachmentIds: [ofComment.id] });
  await addThread(tenant, 'room', { body: HELD_TEXT, attachmentIds: [ofThread.id] });
  done(
    200,
    await tenant.request('PATCH', `/comments/${thread.comments[0]?.id}`, {
      body: { body: HELD_TEXT, attachmentIds: [ofEdit.id] },
    }),
  );
  const get = (headers: Record<string, string>, query = '') =>
    Promise.all(
      [ofComment, ofThread, ofEdit].map(
        async ({ id }) =>
          (await fetch(`${service.urls[0]}/files/${tenant.environment.id}/${id}${query}`, { headers })).status,
      ),
    );
  const user = (userId: string, role: 'member' | 'moderator', rooms: string[]) =>
    tenant.userHeaders({ userId, role, rooms });
  const key = async (rooms: string) => ({ Authorization: `Bearer ${(await tenant.newKey({ rooms })).value}` });
  for (const [userId, role] of [
    ['mod', 'moderator'],
    ['ann', 'member'],
  ] as const) {
    t.strictSame(await get(await user(userId, role, ['other'])), [403, 403, 403], `${userId} elsewhere`);
    t.strictSame(await get(await user(userId, role, ['room'])), [200, 200, 200], `${userId} in the room`);
  }
  t.strictSame(await get(await user('bob', 'member', ['other'])), [404, 404, 404]);
  for (const userId of ['ann', 'bob']) {
    t.strictSame(
      await get(await key('other'), `?userId=${userId}`),
      [403, 403, 403],
      `a key for other rooms that acts for ${userId}`,
    );
    t.strictSame(
      await get(await key('room'), `?userId=${userId}`),
      [200, 200, 200],
      `a key for the room that acts for ${userId}`,
    );
  }
});

t.test(
  'deleting the comment, thread or room, and erasing the author, remove held items with their files',
  async (t) => {
    const { service, tenant, thread } = await start(t);
    const hold = async (threadId: string) => {
      const { json: file } = await upload(tenant, { bytes: await png(20), type: 'image/png' });
      await addComment(tenant, threadId, { body: HELD_TEXT, attachmentIds: [file.id] });
    };
    const other = await addThread(tenant, 'room');
    const reply = await addComment(tenant, thread.id, {});
    done(200, await tenant.request('PATCH', `/comments/${reply.id}`, { body: { body: HELD_TEXT } }));
    done(200, await tenant.request('DELETE', `/comments/${reply.id}`));
    t.strictSame(await queueOf(tenant), [], 'the edit of a deleted comment');
    await hold(thread.id);
    done(200, await tenant.request('DELETE', `/threads/${thread.id}`));
    t.strictSame(await queueOf(tenant), [], 'the comment of a deleted thread');
    await hold(other.id);
    await addThread(tenant, 'room', { body: HELD_TEXT });
    done(200, await tenant.request('DELETE', '/rooms/room'));
    t.strictSame(await queueOf(tenant), [], 'everything of a deleted room');
    await hold((await addThread(tenant, 'room', { userId: 'bob' })).id);
    done(200, await tenant.request('DELETE', '/users/ann'));
    t.strictSame(await queueOf(tenant), [], 'what an erased user wrote');
    t.strictSame(await service.ctx.store.range(moderationIndexOf(tenant.environment.id)), []);
    t.strictSame(await service.ctx.store.range(moderationOf(tenant.environment.id)), []);
  },
);

t.test('an idempotent repetition holds nothing twice, and the queue has a bound per user', async (t) => {
  const { tenant, thread } = await start(t);
  const send = () =>
    tenant.request('POST', `/threads/${thread.id}/comments`, {
      body: { userId: 'ann', body: HELD_TEXT },
      headers: { 'Idempotency-Key': 'k1' },
    });
  const [first, second] = [await send(), await send()];
  t.strictSame([first.status, second.status, second.text], [201, 201, first.text]);
  t.equal((await queueOf(tenant)).length, 1);
  const ann = await tenant.join({ userId: 'ann' });
  let held = 1;
  for (; held < 100; held++)
    if ((await ann.request('comment.create', { threadId: thread.id, body: `${HELD_TEXT} ${held}` })).type === 'error')
      break;
  t.equal(held, 100);
  t.match(await ann.request('comment.create', { threadId: thread.id, body: HELD_TEXT }), {
    type: 'error',
    error: { code: 'quota_exceeded' },
  });
});

t.test('a comment is reported once per user, and the reports are dismissed or the comment is deleted', async (t) => {
  const { service, tenant, thread } = await start(t);
  const [comment] = thread.comments;
  const report = (fields: object, headers = {}) =>
    tenant.request<{ report: Report }>('POST', `/comments/${comment?.id}/report`, {
      body: { reason: 'spam', ...fields },
      headers,
    });
  t.equal((await report({ userId: 'bob' })).status, 201);
  const again = await report({ userId: 'bob', reason: 'other' });
  t.strictSame([again.status, again.json.report.reason], [200, 'spam'], 'the first report counts');
  t.equal(
    (await report({}, { Authorization: '', ...(await tenant.userHeaders({ userId: 'bob' })) })).status,
    200,
    'the same user with a token',
  );
  t.equal((await report({ userId: 'nobody' })).status, 400);
  t.equal((await report({ reason: '' })).status, 400);
  service.clock.advance(1_000);
  const socket = await tenant.join({ userId: 'mod' });
  t.match(await socket.request('comment.report', { commentId: comment?.id, reason: 'rude' }), {
    type: 'ok',
    data: { report: { userId: 'mod', reason: 'rude' } },
  });
  const [item] = await queueOf(tenant, 'reported');
  t.match(item, {
    kind: 'report',
    reportCount: 2,
    userId: 'ann',
    comment: { body: 'Hello' },
    reports: [{ userId: 'bob' }, { userId: 'mod' }],
  });
  done(200, await approve(tenant, item as ItemView));
  t.strictSame(await queueOf(tenant, 'reported'), []);
  t.equal((await report({ userId: 'bob' })).status, 200, 'a dismissed report cannot be repeated');
  service.clock.advance(1_000);
  t.equal((await report({ userId: 'ann' })).status, 201, 'others open another item');
  const [second] = await queueOf(tenant, 'reported');
  t.match(second, { reportCount: 1 });
  t.strictSame(
    second?.reports.map(({ userId }) => userId),
    ['ann'],
    'which shows the reports since the decision',
  );
  const dismissed = done(200, await tenant.request<{ item: ItemView }>('GET', `/moderation/${item?.id}`)).item;
  t.strictSame(
    dismissed.reports.map(({ userId }) => userId),
    ['bob', 'mod'],
    'and the dismissed one those before it',
  );
  await addComment(tenant, thread.id, { body: 'stays' });
  done(200, await reject(tenant, second as ItemView));
  t.match(await commentsOf(tenant, thread.id), [{ body: 'stays' }]);
  t.strictSame(await service.ctx.store.range(reportsOf(tenant.environment.id)), []);
  t.match(await socket.until(() => socket.frames.find(({ type }) => type === 'comment.deleted')), {
    data: { commentId: comment?.id },
  });
});

t.test(
  'an edit after a dismissal opens the way to another report, and the item keeps the text as it was reported',
  async (t) => {
    const { service, tenant, thread } = await start(t);
    const { id } = await addComment(tenant, thread.id, { id: 'reported-1', body: 'abuse 1' });
    const report = async (userId: string, commentId = id) =>
      (await tenant.request('POST', `/comments/${commentId}/report`, { body: { reason: `says ${userId}`, userId } }))
        .status;
    const edit = async (body: string) =>
      done(200, await tenant.request('PATCH', `/comments/${id}`, { body: { body } }));
    // Sorted: reports of the same millisecond have no order.
    const shown = ({ state, comment, current, reports, reportCount }: ItemView & { current?: Comment | null }) => [
      state,
      comment?.body,
      current?.body,
      reportCount,
      ...reports.map(({ reason, body }) => (body === undefined ? reason : `${reason}: ${body}`)).sort(),
    ];
    const later = () => service.clock.advance(1_000);
    t.equal(await report('bob'), 201);
    const [first] = await queueOf(tenant, 'reported');
    later();
    await edit('harmless');
    later();
    t.equal(await report('mod'), 201);
    t.strictSame((await queueOf(tenant, 'reported')).map(shown), [
      ['reported', 'abuse 1', 'harmless', 2, 'says bob', 'says mod: harmless'],
    ]);
    later();
    done(200, await approve(tenant, first as ItemView));
    later();
    t.equal(await report('bob'), 200, 'not again without an edit');
    done(200, await tenant.request('PATCH', `/comments/${id}`, { body: { body: 'abuse 2' } }));
    later();
    t.strictSame([await report('bob'), await report('bob'), await report('mod')], [201, 200, 201]);
    t.strictSame((await queueOf(tenant, 'reported')).map(shown), [
      ['reported', 'abuse 2', 'abuse 2', 2, 'says bob', 'says mod'],
    ]);
    t.strictSame(
      (await queueOf(tenant, 'decided')).map(shown),
      [['approved', 'abuse 1', 'abuse 2', 2, 'says bob', 'says mod: harmless']],
      'the dismissed reports stay',
    );

    done(200, await tenant.request('DELETE', `/comments/${id}`));
    t.strictSame(
      (await queueOf(tenant, 'reported')).map(shown),
      [['reported', 'abuse 2', undefined, 2, 'says bob', 'says mod']],
      'its author cannot take it away',
    );
    later();
    await addComment(tenant, thread.id, { id, body: 'another one' });
    t.strictSame([await report('bob'), await report('mod')], [201, 201], 'a comment that has the id later has its own');
    const queue = await queueOf(tenant, 'reported');
    t.strictSame(queue.map(shown), [
      ['reported', 'abuse 2', undefined, 2, 'says bob', 'says mod'],
      ['reported', 'another one', 'another one', 2, 'says bob', 'says mod'],
    ]);
    done(200, await reject(tenant, queue[0] as ItemView));
    t.match(
      (await commentsOf(tenant, thread.id)).map(({ body }) => body),
      ['Hello', 'another one'],
      'rejecting the first deletes nothing else',
    );
    done(200, await reject(tenant, queue[1] as ItemView));
    t.strictSame(
      (await commentsOf(tenant, thread.id)).map(({ body }) => body),
      ['Hello'],
    );
    t.match(
      done(200, await tenant.request<{ items: ItemView[] }>('GET', '/users/ann/held')).items.map(
        ({ kind, state, comment }) => [kind, state, comment?.body],
      ),
      [
        ['report', 'rejected', 'abuse 2'],
        ['report', 'rejected', 'another one'],
      ],
    );

    const other = await addThread(tenant, 'room', { userId: 'ann', body: 'abuse 3' });
    t.equal(await report('bob', other.comments[0]?.id), 201);
    done(200, await tenant.request('DELETE', `/threads/${other.id}`));
    t.match(
      (await queueOf(tenant, 'reported')).map(shown),
      [['reported', 'abuse 3', undefined, 1, 'says bob']],
      'nor with its thread',
    );
    done(200, await tenant.request('DELETE', '/users/ann'));
    t.strictSame(await queueOf(tenant, 'reported'), [], 'an erasure removes what its author had deleted');
    service.clock.advance(31 * DAY_MS);
    await sweepItems(service.ctx, tenant.environment.id);
    done(200, await tenant.request('DELETE', '/rooms/room'));
    t.strictSame(
      [
        await service.ctx.store.range(moderationIndexOf(tenant.environment.id)),
        await service.ctx.store.range(reportsOf(tenant.environment.id)),
      ],
      [[], []],
      'nothing is left',
    );
  },
);

t.test('the report of a comment that was deleted waits 30 days for a moderator', async (t) => {
  const { service, tenant } = await start(t);
  const thread = await addThread(tenant, 'room', { userId: 'ann', body: 'stays' });
  const { id: gone } = await addComment(tenant, thread.id, { userId: 'ann', body: 'goes' });
  for (const id of [gone, thread.comments[0]?.id])
    done(201, await tenant.request('POST', `/comments/${id}/report`, { body: { userId: 'bob', reason: 'abuse' } }));
  done(200, await tenant.request('DELETE', `/comments/${gone}`));
  const texts = async () => (await queueOf(tenant, 'reported')).map(({ comment }) => comment?.body);
  service.clock.advance(30 * DAY_MS - 1000);
  t.strictSame(
    [
      await sweepItems(service.ctx, tenant.environment.id),
      (await texts()).toSorted((a = '', b = '') => a.localeCompare(b)),
    ],
    [0, ['goes', 'stays']],
  );
  service.clock.advance(DAY_MS);
  t.strictSame(
    [await sweepItems(service.ctx, tenant.environment.id), await texts()],
    [1, ['stays']],
    'a report of what can be seen waits on',
  );
});
