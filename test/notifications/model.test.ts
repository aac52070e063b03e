import fc from 'fast-check';
import t from 'tap';
import { issueToken } from '../../src/domain/access/issue-token.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import { deleteComment, editComment } from '../../src/domain/comments/comments.ts';
import { deleteThread } from '../../src/domain/comments/threads.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { listNotifications, markRead } from '../../src/domain/notifications/inbox.ts';
import { notifyOf } from '../../src/domain/notifications/notify.ts';
import { putNotificationSettings } from '../../src/domain/notifications/settings.ts';
import { changeSubscription } from '../../src/domain/notifications/subscriptions.ts';
import { deleteUser, putUser } from '../../src/domain/users/users.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import type { Notification } from '../../src/model/notification.ts';
import { addComment, createWorld, query, startThread, type World } from '../domain/world.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { InboxModel } from '../helpers/inbox-model.ts';

const RUNS = 1;
const OPERATIONS = 4_000 * CRASH_FACTOR;
const CHECK_EVERY = 250;
const USERS = ['ann', 'bob', 'cat', 'dan'];
/** Also an id that no user has. */
const MENTIONABLE = [...USERS, 'stranger'];
const ROOMS = ['docs', 'wiki'];

const index = fc.nat({ max: 1_000 });
const mentions = fc.subarray(MENTIONABLE, { maxLength: 2 });
const user = fc.constantFrom(...USERS);
const operation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('thread' as const), user, room: fc.constantFrom(...ROOMS), mentions }),
  },
  { weight: 20, arbitrary: fc.record({ kind: fc.constant('comment' as const), user, index, mentions }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('edit' as const), index, mentions }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete comment' as const), index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete thread' as const), index }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('choose' as const),
      user,
      index,
      action: fc.constantFrom('subscribe', 'unsubscribe', 'mute'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      user: fc.constantFrom(...MENTIONABLE),
      index,
      all: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('set' as const), user, mention: fc.boolean(), reply: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('confine' as const),
      user,
      rooms: fc.constantFrom(undefined, ['docs'], ['wiki', 'docs']),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase' as const), user }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('handle' as const), repeated: fc.nat({ max: 3 }) }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** The server and the model, side by side. */
class Pair {
  readonly world: World;
  readonly model = new InboxModel();
  readonly #threads: string[] = [];
  readonly #comments: { readonly id: string; readonly threadId: string }[] = [];
  #handled = 0;

  constructor(world: World) {
    this.world = world;
  }

  async run(step: Operation): Promise<void> {
    const { ctx, backend, clock } = this.world;
    clock.advance(1_000);
    const at = clock.now();
    // What users choose counts from when an event is handled, so that the model must not run ahead.
    if (step.kind !== 'thread' && step.kind !== 'comment') await this.handle('repeated' in step ? step.repeated : 0);
    switch (step.kind) {
      case 'thread': {
        const { threadId, commentId } = await startThread(this.world, step.room, {
          userId: step.user,
          mentions: step.mentions,
        });
        this.model.addThread(threadId, step.room);
        this.model.addComment(threadId, commentId, step.user, step.mentions, at);
        this.#threads.push(threadId);
        return void this.#comments.push({ id: commentId, threadId });
      }
      case 'comment': {
        const threadId = pick(this.#threads, step.index);
        if (threadId === undefined) return;
        const { id } = await addComment(this.world, threadId, { userId: step.user, mentions: step.mentions });
        this.model.addComment(threadId, id, step.user, step.mentions, at);
        return void this.#comments.push({ id, threadId });
      }
      case 'edit': {
        const comment = pick(this.#comments, step.index);
        if (comment === undefined) return;
        await editComment(ctx, backend, comment.id, { body: 'edited', mentions: step.mentions });
        return this.model.edit(comment.threadId, comment.id, step.mentions, at);
      }
      case 'delete comment': {
        const comment = pick(this.#comments, step.index);
        if (comment === undefined) return;
        await deleteComment(ctx, backend, comment.id);
        this.model.deleteComment(comment.id);
        this.#drop(({ id }) => id === comment.id);
        if (!this.#comments.some(({ threadId }) => threadId === comment.threadId)) this.#dropThread(comment.threadId);
        return;
      }
      case 'delete thread': {
        const threadId = pick(this.#threads, step.index);
        if (threadId === undefined) return;
        await deleteThread(ctx, backend, threadId);
        return this.#dropThread(threadId);
      }
      case 'choose': {
        const threadId = pick(this.#threads, step.index);
        if (threadId === undefined) return;
        await changeSubscription(ctx, backend, threadId, { userId: step.user, action: step.action }, null);
        return this.model.choose(threadId, step.user, step.action, at);
      }
      case 'read': {
        const shown = this.model.inbox(step.user).filter((item) => item.shown);
        const one = pick(shown, step.index);
        if (step.all) for (const item of shown) item.read = true;
        else if (one !== undefined) one.read = true;
        const ids = (await this.#list(step.user)).items
          .filter(({ commentId }) => commentId === one?.commentId)
          .map(({ id }) => id);
        return void (await markRead(ctx, backend, step.user, step.all ? { all: true } : { ids }, null));
      }
      case 'set': {
        const { mention, reply } = step;
        await putNotificationSettings(ctx, backend, step.user, { inApp: { mention, reply } });
        const known = this.model.users.get(step.user);
        if (known !== undefined) known.inApp = { mention, reply };
        return;
      }
      case 'confine': {
        await issueToken(ctx, backend, step.user, { rooms: step.rooms }, null);
        const known = this.model.users.get(step.user);
        if (known !== undefined) known.rooms = step.rooms ?? null;
        return;
      }
      case 'erase': {
        await deleteUser(ctx, backend, step.user);
        this.model.erase(step.user);
        await this.handle(0);
        clock.advance(1_000);
        return this.addUser(step.user);
      }
      case 'handle':
    }
  }

  async addUser(userId: string): Promise<void> {
    await putUser(this.world.ctx, this.world.backend, userId, {});
    this.model.addUser(userId, this.world.clock.now());
  }

  /** Handles the new events: the first of them several times, as after crashes, then all. */
  async handle(repeated: number): Promise<void> {
    const { ctx, environment } = this.world;
    const events = (await ctx.store.events(streamOf(environment), this.#handled, 100_000)).map(
      ({ text }) => JSON.parse(text) as EventEnvelope,
    );
    for (let n = 1; n <= repeated; n++)
      await notifyOf(ctx, environment, events.slice(0, Math.ceil((events.length * n) / (repeated + 1))));
    await notifyOf(ctx, environment, events);
    this.#handled = events.at(-1)?.seq ?? this.#handled;
  }

  async check(): Promise<void> {
    await this.handle(1);
    for (const userId of MENTIONABLE) {
      const expected = this.model
        .inbox(userId)
        .filter(({ shown }) => shown)
        .map(({ commentId, kind, read, at, updatedAt }) => ({ commentId, kind, read, at, updatedAt }));
      const { items, unreadCount } = await this.#list(userId);
      const found = items.map(({ commentId, kind, readAt, createdAt, updatedAt }) => ({
        commentId,
        kind,
        read: readAt !== null,
        at: Date.parse(createdAt),
        updatedAt: Date.parse(updatedAt),
      }));
      const wanted = expected.toSorted((a, b) => a.at - b.at);
      if (JSON.stringify(found) !== JSON.stringify(wanted))
        throw new Error(
          `the inbox of ${userId} has ${JSON.stringify(found.filter((item) => !has(wanted, item)))} and lacks ${JSON.stringify(wanted.filter((item) => !has(found, item)))}`,
        );
      const unread = wanted.filter(({ read }) => !read).length;
      if (unreadCount !== unread) throw new Error(`${userId} has ${unread} unread, and the count says ${unreadCount}`);
    }
  }

  async #list(userId: string): Promise<{ items: Notification[]; unreadCount: number }> {
    const { text } = await listNotifications(
      this.world.ctx,
      this.world.backend,
      userId,
      query('notifications', 'order=asc'),
    );
    return JSON.parse(Buffer.from(text).toString()) as { items: Notification[]; unreadCount: number };
  }

  #dropThread(threadId: string): void {
    this.model.deleteThread(threadId);
    this.#threads.splice(this.#threads.indexOf(threadId), 1);
    this.#drop((comment) => comment.threadId === threadId);
  }

  #drop(isGone: (comment: { id: string; threadId: string }) => boolean): void {
    this.#comments.splice(0, this.#comments.length, ...this.#comments.filter((comment) => !isGone(comment)));
  }
}

function pick<T>(items: readonly T[], at: number): T | undefined {
  return items[at % Math.max(1, items.length)];
}

function has(items: readonly object[], item: object): boolean {
  return items.some((other) => JSON.stringify(other) === JSON.stringify(item));
}

t.test(`the inbox is that of a naive model after ${RUNS * OPERATIONS} random operations`, async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(operation, { minLength: OPERATIONS, maxLength: OPERATIONS, size: 'max' }),
      async (steps) => {
        const world = await createWorld(t);
        await addSigningKey(world.ctx, world.environment, { kind: 'secret' });
        const pair = new Pair(world);
        await pair.handle(0);
        world.clock.advance(1_000);
        for (const userId of USERS) {
          if (userId !== 'ann' && userId !== 'bob') await pair.addUser(userId);
          else pair.model.addUser(userId, 0);
        }
        for (const [n, step] of steps.entries()) {
          await pair.run(step);
          if (n % CHECK_EVERY === CHECK_EVERY - 1) await pair.check();
        }
        await pair.check();
      },
    ),
    { numRuns: RUNS, seed: 20_260_102, endOnFailure: true },
  );
});
