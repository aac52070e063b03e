import t from 'tap';
import { listComments } from '../../src/domain/comments/comments.ts';
import { addReaction } from '../../src/domain/comments/reactions.ts';
import { deleteUser, getUser, listUsers, putUser, recordUserFromToken } from '../../src/domain/users/users.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import type { User } from '../../src/model/user.ts';
import { createWorld, itemsOf, query, START, startThread } from './world.ts';
import { streamOf } from '../../src/domain/events/streams.ts';

await t.test('an erased user is unknown, the event has no personal data, and their content stays', async (t) => {
  const world = await createWorld(t);
  const { ctx, peer, backend } = world;
  const { threadId, commentId } = await startThread(world);
  await addReaction(ctx, backend, commentId, { userId: 'ann', emoji: '👍' }, null);
  await putUser(ctx, backend, 'ann', {
    email: 'ann@example.com',
    avatarUrl: 'https://example.com/ann.png',
    kind: 'bot',
    metadata: { phone: '555' },
  });
  await recordUserFromToken(
    ctx,
    world.environment,
    { userId: 'ann', role: 'member', rooms: null, confinedKeyId: null, expiresAt: START + 1000 },
    'ws',
  );
  world.clock.advance(1000);
  t.equal(await deleteUser(ctx, backend, 'ann'), '{"deleted":true}');
  await t.rejects(getUser(peer, backend, 'ann'), { code: 'user_not_found' });
  t.strictSame(
    itemsOf<User>(await listUsers(peer, backend, query('users'))).map(({ id }) => id),
    ['bob'],
  );
  const [comment] = itemsOf<Comment>(await listComments(peer, backend, threadId, query('comments')));
  t.match(comment, { userId: 'ann', reactions: [{ userId: 'ann' }] });

  const events = await ctx.store.events(streamOf(world.environment), 0, 1000);
  const last = JSON.parse(events.at(-1)?.text ?? '') as EventEnvelope;
  t.match(last, { type: 'user.updated', actor: { userId: null, via: 'rest' } });
  const at = new Date(START).toISOString();
  t.strictSame(last.data, {
    id: 'ann',
    userId: 'ann',
    name: null,
    avatarUrl: null,
    kind: 'user',
    metadata: {},
    createdAt: at,
    updatedAt: new Date(START + 1000).toISOString(),
    firstSeenAt: null,
    lastSeenAt: null,
    online: false,
    erased: true,
  });
  await t.rejects(deleteUser(ctx, backend, 'ann'), { code: 'user_not_found', message: 'User not found' });
  await t.rejects(startThread(world), { code: 'unknown_user' });
  await putUser(ctx, backend, 'ann', {});
  t.match(JSON.parse(await getUser(peer, backend, 'ann')), {
    user: { name: null, email: null, kind: 'user', metadata: {}, lastSeenAt: null },
  });
});

await t.test('only a backend with a full key erases', async (t) => {
  const world = await createWorld(t);
  const refused = { code: 'forbidden' };
  await t.rejects(deleteUser(world.ctx, world.ann, 'ann'), refused);
  await t.rejects(deleteUser(world.ctx, { ...world.bob, role: 'moderator' }, 'ann'), refused);
  for (const scope of ['read', 'moderate'] as const)
    await t.rejects(deleteUser(world.ctx, { ...world.backend, scope }, 'ann'), refused);
  await t.rejects(deleteUser(world.ctx, world.backend, 'x'.repeat(129)), {
    message: 'userId must be 1 to 128 characters',
  });
});

await t.test('users are found by their metadata', async (t) => {
  const world = await createWorld(t);
  await putUser(world.ctx, world.backend, 'ann', { metadata: { team: 'a', admin: true } });
  const found = async (search: string) =>
    itemsOf<User>(await listUsers(world.ctx, world.backend, query('users', search))).map(({ id }) => id);
  t.strictSame(await found('metadata.team=a&metadata.admin=true'), ['ann']);
  t.strictSame(await found('metadata.team=b'), []);
});
