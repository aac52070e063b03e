import type { Test } from 'tap';
import { CHEAP_LN } from '../doubles/cheap-passwords.ts';
import { MemoryDatabase } from '../doubles/memory-database.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { YjsThread } from '../../src/adapters/yjs/yjs-thread.ts';
import { createComment } from '../../src/domain/comments/comments.ts';
import type { BackendActor, UserActor } from '../../src/domain/access/actor.ts';
import type { Context } from '../../src/domain/context.ts';
import { CrdtService } from '../../src/domain/rooms/crdt.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { type ListKind, type ListQuery, type Page, parseListQuery } from '../../src/domain/lists/list-query.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import { putUser } from '../../src/domain/users/users.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { newShared } from '../helpers/new-shared.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { backendOf } from '../helpers/backend-of.ts';

/** An environment with the users ann and bob, and the contexts of two workers. */
export interface World {
  readonly ctx: Context;
  /** Another worker over the same records. */
  readonly peer: Context;
  readonly database: MemoryDatabase;
  readonly clock: ManualClock;
  readonly environment: Environment;
  readonly backend: BackendActor;
  readonly ann: UserActor;
  readonly bob: UserActor;
  /** The events so far, without user events. */
  events(): Promise<EventEnvelope[]>;
}

export const START = Date.parse('2026-01-02T03:04:05.678Z');

export async function createWorld(t: Test): Promise<World> {
  const database = new MemoryDatabase();
  const clock = new ManualClock(START);
  const shared = newShared(clock);
  const store = new MemoryStore(database);
  const peerStore = new MemoryStore(database);
  const crdt = new CrdtService(new YjsThread(), { crdt: { mergeSecondsPerMinute: 0 } });
  t.teardown(() => Promise.all([store.close(), peerStore.close(), crdt.close()]));
  const ctx: Context = { store, shared, clock, crdt, passwordLn: CHEAP_LN };
  const environment = await createEnvironment(ctx, { slug: 'dev' });
  const backend = backendOf(environment);
  const user = (userId: string): UserActor => ({
    kind: 'user',
    environment,
    userId,
    role: 'member',
    rooms: null,
    confinedKeyId: null,
    via: 'ws',
  });
  await putUser(ctx, backend, 'ann', { name: 'Ann' });
  await putUser(ctx, backend, 'bob', { name: 'Bob' });
  return {
    ctx,
    peer: { store: peerStore, shared, clock, crdt },
    database,
    clock,
    environment,
    backend,
    ann: user('ann'),
    bob: user('bob'),
    events: async () => {
      const events = await store.events(streamOf(environment), 0, 100_000);
      return events.map(({ text }) => JSON.parse(text) as EventEnvelope).filter(({ type }) => type !== 'user.updated');
    },
  };
}

/** Creates a thread by ann and returns its id and that of its first comment. */
export async function startThread(
  world: World,
  roomId = 'room',
  fields: object = {},
): Promise<{ threadId: string; commentId: string }> {
  const outcome = await createThread(
    world.ctx,
    world.backend,
    roomId,
    { userId: 'ann', body: 'first', ...fields },
    null,
  );
  const { thread } = JSON.parse(outcome.body) as { thread: { id: string; comments: Comment[] } };
  return { threadId: thread.id, commentId: thread.comments[0]?.id ?? '' };
}

/** Adds a comment by ann and returns it. */
export async function addComment(world: World, threadId: string, fields: object = {}): Promise<Comment> {
  const outcome = await createComment(
    world.ctx,
    world.backend,
    threadId,
    { userId: 'ann', body: 'more', ...fields },
    null,
  );
  return (JSON.parse(outcome.body) as { comment: Comment }).comment;
}

/** Parses the query of a list, given without the question mark. */
export function query(list: ListKind, search = ''): ListQuery {
  return parseListQuery(new URLSearchParams(search), list);
}

export function itemsOf<T>(page: Page): T[] {
  return (JSON.parse(Buffer.from(page.text).toString()) as { items: T[] }).items;
}
