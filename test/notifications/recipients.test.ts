import t from 'tap';
import { handled, inboxOf, startNotifying } from '../helpers/notifications.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

const service = await startService(t);
const consumers = await startNotifying(t, service.ctx);
let tenants = 0;

/** A thread by ann in the room `docs`, in an environment of its own with the users ann, bob and cat. */
interface Scene {
  readonly tenant: Tenant;
  readonly threadId: string;
  /** The id of the first comment. */
  readonly firstId: string;
  readonly settle: () => Promise<void>;
  /** The kinds of a user's notifications, newest first. */
  readonly kinds: (userId: string) => Promise<string[]>;
  readonly says: (userId: string, fields?: object) => Promise<string>;
  readonly choose: (userId: string, action: string) => Promise<void>;
  readonly set: (userId: string, settings: object) => Promise<void>;
  readonly confine: (userId: string, rooms?: readonly string[]) => Promise<void>;
  readonly edit: (commentId: string, fields: object) => Promise<void>;
}

async function scene(mentions: readonly string[] = []): Promise<Scene> {
  const tenant = await service.tenant(`scene-${++tenants}`);
  for (const userId of ['ann', 'bob', 'cat']) await addUser(tenant, userId);
  const { id: threadId, comments } = await addThread(tenant, 'docs', { mentions });
  const settle = async (): Promise<void> => {
    await handled(consumers, service.ctx, tenant.environment);
    service.clock.advance(1_000);
  };
  await settle();
  return {
    tenant,
    threadId,
    firstId: comments[0]?.id ?? '',
    settle,
    kinds: async (userId) => (await inboxOf(tenant, userId)).items.map(({ kind }) => kind),
    says: async (userId, fields = {}) => {
      const { id } = await addComment(tenant, threadId, { userId, ...fields });
      await settle();
      return id;
    },
    choose: async (userId, action) => {
      done(200, await tenant.request('POST', `/threads/${threadId}/subscription`, { body: { userId, action } }));
      service.clock.advance(1_000);
    },
    set: async (userId, settings) =>
      void done(200, await tenant.request('PUT', `/users/${userId}/notification-settings`, { body: settings })),
    confine: async (userId, rooms) =>
      void done(201, await tenant.request('POST', `/users/${userId}/tokens`, { body: { rooms } })),
    edit: async (commentId, fields) => {
      done(200, await tenant.request('PATCH', `/comments/${commentId}`, { body: { body: 'edited', ...fields } }));
      await settle();
    },
  };
}

interface Case {
  readonly name: string;
  readonly mentions?: readonly string[];
  readonly steps: (scene: Scene) => Promise<unknown>;
  /** Kinds by user, newest first; users that are left out have none. */
  readonly expected: Readonly<Record<string, readonly string[]>>;
}

const cases: readonly Case[] = [
  {
    name: 'a new thread notifies whom it mentions, not its author',
    mentions: ['bob', 'ann'],
    steps: async () => {},
    expected: { bob: ['mention'] },
  },
  { name: 'a new thread notifies nobody else', steps: async () => {}, expected: {} },
  {
    name: 'a comment notifies participants, not its author',
    steps: ({ says }) => says('bob'),
    expected: { ann: ['reply'] },
  },
  {
    name: 'every participant',
    steps: async ({ says }) => [await says('bob'), await says('cat')],
    expected: { ann: ['reply', 'reply'], bob: ['reply'] },
  },
  {
    name: 'a comment of their own notifies nobody of it',
    steps: async ({ says }) => [await says('bob', { mentions: ['bob'] })],
    expected: { ann: ['reply'] },
  },
  {
    name: 'mention takes precedence over reply',
    steps: ({ says }) => says('bob', { mentions: ['ann'] }),
    expected: { ann: ['mention'] },
  },
  {
    name: 'a mentioned user is no participant',
    mentions: ['cat'],
    steps: ({ says }) => says('bob'),
    expected: { ann: ['reply'], cat: ['mention'] },
  },
  {
    name: 'a mention of an id that no user has is kept',
    mentions: ['dan@later'],
    steps: async () => {},
    expected: { 'dan@later': ['mention'] },
  },
  {
    name: 'an edit notifies whom it mentions',
    steps: ({ edit, firstId }) => edit(firstId, { mentions: ['bob'] }),
    expected: { bob: ['mention'] },
  },
  {
    name: 'a second edit notifies nobody twice',
    mentions: ['bob'],
    steps: async ({ edit, firstId }) => [await edit(firstId, {}), await edit(firstId, { mentions: ['bob', 'cat'] })],
    expected: { bob: ['mention'], cat: ['mention'] },
  },
  {
    name: 'an edit by a backend does not notify the author',
    steps: ({ edit, firstId }) => edit(firstId, { mentions: ['ann'] }),
    expected: {},
  },
  {
    name: 'an edit makes an unread reply a mention',
    steps: async ({ says, edit }) => edit(await says('bob'), { mentions: ['ann'] }),
    expected: { ann: ['mention'] },
  },
  {
    name: 'an edit withdraws an unread mention',
    mentions: ['bob', 'cat'],
    steps: ({ edit, firstId }) => edit(firstId, { mentions: ['cat'] }),
    expected: { cat: ['mention'] },
  },
  {
    name: 'a participant whose mention is edited away keeps a reply',
    steps: async ({ says, edit }) => edit(await says('bob', { mentions: ['ann', 'cat'] }), { mentions: [] }),
    expected: { ann: ['reply'] },
  },
  {
    name: 'a reply that an edit made a mention becomes a reply again',
    steps: async ({ says, edit }) => {
      const id = await says('bob');
      await edit(id, { mentions: ['ann'] });
      await edit(id, { mentions: [] });
    },
    expected: { ann: ['reply'] },
  },
  {
    name: 'a mention that was read stays when it is edited away',
    mentions: ['bob'],
    steps: async ({ edit, firstId, tenant }) => {
      done(200, await tenant.request('POST', '/users/bob/notifications/read', { body: { all: true } }));
      await edit(firstId, { mentions: [] });
    },
    expected: { bob: ['mention'] },
  },
  {
    name: 'a mention that comes back notifies again',
    mentions: ['bob'],
    steps: async ({ edit, firstId, kinds }) => {
      await edit(firstId, { mentions: [] });
      t.strictSame(await kinds('bob'), []);
      await edit(firstId, { mentions: ['bob'] });
    },
    expected: { bob: ['mention'] },
  },
  {
    name: 'an edit withdraws only what is about its comment',
    mentions: ['bob'],
    steps: async ({ says, edit }) => edit(await says('ann', { mentions: ['bob'] }), { mentions: [] }),
    expected: { bob: ['mention'] },
  },
  {
    name: 'a mention that is edited away before it is handled',
    steps: async ({ tenant, threadId, edit }) =>
      edit((await addComment(tenant, threadId, { userId: 'ann', mentions: ['bob'] })).id, { mentions: [] }),
    expected: {},
  },
  {
    name: 'an edit notifies of a mention although the reply was read, and not again once the mention was',
    steps: async ({ says, edit, tenant }) => {
      const id = await says('bob');
      const readAll = async (): Promise<unknown> =>
        done(200, await tenant.request('POST', '/users/ann/notifications/read', { body: { all: true } }));
      await readAll();
      await edit(id, { mentions: ['ann'] });
      await edit(id, { mentions: ['ann'] });
      await readAll();
      await edit(id, { mentions: ['ann'] });
    },
    expected: { ann: ['mention', 'reply'] },
  },
  {
    name: 'a subscriber who has not commented',
    steps: async ({ choose, says }) => [await choose('cat', 'subscribe'), await says('bob')],
    expected: { ann: ['reply'], cat: ['reply'] },
  },
  {
    name: 'an unsubscribed participant is notified of mentions only',
    steps: async ({ choose, says }) => [
      await choose('ann', 'unsubscribe'),
      await says('bob'),
      await says('bob', { mentions: ['ann'] }),
    ],
    expected: { ann: ['mention'] },
  },
  {
    name: 'a muted thread notifies of nothing',
    steps: async ({ choose, says }) => [
      await choose('ann', 'mute'),
      await says('bob'),
      await says('bob', { mentions: ['ann'] }),
    ],
    expected: {},
  },
  {
    name: 'subscribing ends a mute',
    steps: async ({ choose, says }) => [
      await choose('ann', 'mute'),
      await choose('ann', 'subscribe'),
      await says('bob'),
    ],
    expected: { ann: ['reply'] },
  },
  {
    name: 'a mute keeps an edit from notifying',
    steps: async ({ choose, edit, firstId }) => [
      await choose('bob', 'mute'),
      await edit(firstId, { mentions: ['bob'] }),
    ],
    expected: {},
  },
  {
    name: 'a user whose token is confined to other rooms',
    steps: async ({ confine, says }) => [
      await confine('ann', ['elsewhere', 'wiki*']),
      await says('bob', { mentions: ['ann'] }),
    ],
    expected: {},
  },
  {
    name: 'a user whose token is confined to the room',
    steps: async ({ confine, says }) => [await confine('ann', ['do*']), await says('bob')],
    expected: { ann: ['reply'] },
  },
  {
    name: 'the latest token counts',
    steps: async ({ confine, says, tenant }) => {
      await confine('ann', ['elsewhere']);
      service.clock.advance(60_000);
      await confine('ann');
      await says('bob');
      await (await tenant.join({ userId: 'ann', rooms: ['elsewhere'] })).close();
      await says('bob');
    },
    expected: { ann: ['reply'] },
  },
  {
    name: 'a token that a confined key issued does not end the notifications of a user about other rooms',
    steps: async ({ says, tenant }) => {
      await (await tenant.join({ userId: 'ann' })).close();
      service.clock.advance(60_000);
      await (await tenant.join({ userId: 'ann', rooms: ['elsewhere'], confinedKeyId: 'key_1' })).close();
      await says('bob');
    },
    expected: { ann: ['reply'] },
  },
  {
    name: 'tokens that a confined key issued for a user who has no other decide, the latest one',
    steps: async ({ says, tenant }) => {
      await (await tenant.join({ userId: 'ann', rooms: ['elsewhere'], confinedKeyId: 'key_1' })).close();
      await says('bob');
      await (await tenant.join({ userId: 'ann', rooms: ['docs'], confinedKeyId: 'key_2' })).close();
      await says('bob');
      await (await tenant.join({ userId: 'ann', rooms: ['docs'], confinedKeyId: 'key_1' })).close();
      await says('bob');
    },
    expected: { ann: ['reply'] },
  },
  {
    name: 'the inbox does not show what the settings turn off',
    steps: async ({ set, says }) => [
      await set('ann', { inApp: { reply: false } }),
      await says('bob'),
      await says('bob', { mentions: ['ann'] }),
    ],
    expected: { ann: ['mention'] },
  },
  {
    name: 'settings of other channels do not concern the inbox',
    steps: async ({ set, says }) => [
      await set('ann', { email: { reply: false }, 'my-slack': { reply: false } }),
      await says('bob'),
    ],
    expected: { ann: ['reply'] },
  },
  {
    name: 'a deleted comment takes its notifications along',
    steps: async ({ says, tenant, settle }) => [
      await tenant.request('DELETE', `/comments/${await says('bob', { mentions: ['cat'] })}`),
      await settle(),
    ],
    expected: {},
  },
  {
    name: 'a deleted thread takes its notifications along',
    mentions: ['cat'],
    steps: async ({ says, tenant, settle, threadId }) => [
      await says('bob'),
      await tenant.request('DELETE', `/threads/${threadId}`),
      await settle(),
    ],
    expected: {},
  },
  {
    name: 'a deleted room takes its notifications along',
    mentions: ['cat'],
    steps: async ({ says, tenant, settle }) => [
      await says('bob'),
      await tenant.request('DELETE', '/rooms/docs'),
      await settle(),
    ],
    expected: {},
  },
  {
    name: 'an erased user has none, and is no participant',
    mentions: ['cat'],
    steps: async ({ says, tenant, settle }) => [
      await says('bob'),
      await tenant.request('DELETE', '/users/ann'),
      await settle(),
      await says('bob'),
    ],
    expected: { cat: ['mention'] },
  },
  {
    name: 'an erased user who comes back is a new user',
    steps: async ({ says, tenant, settle }) => {
      await tenant.request('DELETE', '/users/ann');
      await settle();
      await addUser(tenant, 'ann');
      await says('bob');
      await says('ann');
      await says('bob');
    },
    expected: { ann: ['reply'], bob: ['reply'] },
  },
];

t.test('a subscription counts from its time on, also when earlier comments are handled later', async (t) => {
  const late = await startService(t);
  const tenant = await late.tenant('late');
  for (const userId of ['ann', 'bob', 'cat']) await addUser(tenant, userId);
  const { id: threadId } = await addThread(tenant, 'docs');
  const earlier = await startNotifying(t, late.ctx);
  await handled(earlier, late.ctx, tenant.environment);
  await earlier.stop();
  const subscribe = async (): Promise<void> => {
    late.clock.advance(1_000);
    const body = { userId: 'cat', action: 'subscribe' };
    done(200, await tenant.request('POST', `/threads/${threadId}/subscription`, { body }));
    late.clock.advance(1_000);
  };
  late.clock.advance(1_000);
  await addComment(tenant, threadId, { userId: 'bob', body: 'before' });
  await subscribe();
  const { id } = await addComment(tenant, threadId, { userId: 'bob', body: 'after' });
  await handled(await startNotifying(t, late.ctx), late.ctx, tenant.environment);
  t.strictSame(
    (await inboxOf(tenant, 'ann')).items.map(({ kind }) => kind),
    ['reply', 'reply'],
    'both are handled',
  );
  t.strictSame(
    (await inboxOf(tenant, 'cat')).items.map(({ commentId }) => commentId),
    [id],
  );
});

for (const { name, mentions, steps, expected } of cases) {
  t.test(name, async (t) => {
    const made = await scene(mentions);
    await steps(made);
    for (const userId of new Set(['ann', 'bob', 'cat', ...Object.keys(expected)])) {
      t.strictSame(await made.kinds(userId), expected[userId] ?? [], userId);
      const { unreadCount, items } = await inboxOf(made.tenant, userId);
      t.equal(unreadCount, items.filter(({ readAt }) => readAt === null).length, `${userId}: the count`);
    }
  });
}
