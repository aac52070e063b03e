import t from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { Reaction } from '../../src/model/reaction.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addUser, type CreatedThread, done } from '../helpers/writer.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

// A client that reads the event log, or receives it over a socket, knows the same as the API answers, deletions
// included. Many writers at once on two workers, then three pictures must be one: the API's, the log's, a browser's.

const PEOPLE = ['ann', 'bob', 'eve'];
const ROOMS = ['one', 'two'];
const WRITERS = 12;
const WRITES_EACH = 30;

/** Numbers that look random, the same ones for the same seed. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Event {
  readonly type: string;
  readonly seq: number;
  readonly data: Record<string, unknown>;
}

interface Picture {
  readonly threads: Map<string, { roomId: string; resolved: boolean; metadata: unknown }>;
  readonly comments: Map<string, Comment>;
}

/** What somebody knows who hears of every event. */
function pictureOf(events: readonly Event[]): Picture {
  const { threads, comments }: Picture = { threads: new Map(), comments: new Map() };
  const keep = ({ id, roomId, resolved, metadata }: Thread): void =>
    void threads.set(id, { roomId, resolved, metadata });
  const react = (commentId: string, change: (reactions: readonly Reaction[]) => Reaction[]): void => {
    const comment = comments.get(commentId);
    if (comment !== undefined) comments.set(commentId, { ...comment, reactions: change(comment.reactions) });
  };
  for (const { type, data } of events) {
    switch (type) {
      case 'thread.created':
        keep(data['thread'] as Thread);
        comments.set((data['comment'] as Comment).id, data['comment'] as Comment);
        break;
      case 'thread.updated':
      case 'thread.resolved':
      case 'thread.reopened':
        keep(data as unknown as Thread);
        break;
      case 'thread.deleted':
        threads.delete(String(data['threadId']));
        for (const { id, threadId } of comments.values()) if (threadId === data['threadId']) comments.delete(id);
        break;
      case 'comment.created':
      case 'comment.updated':
        comments.set(String(data['id']), data as unknown as Comment);
        break;
      case 'comment.deleted':
        comments.delete(String(data['commentId']));
        break;
      case 'reaction.created':
        react(String(data['commentId']), (reactions) => [...reactions, data as unknown as Reaction]);
        break;
      case 'reaction.deleted':
        react(String(data['commentId']), (reactions) => reactions.filter(({ id }) => id !== data['reactionId']));
        break;
    }
  }
  return { threads, comments };
}

/** What the API answers, and that its counts are those of what it lists. */
async function pictureOfApi(t: Tap, tenant: Tenant, worker: number): Promise<Picture> {
  const { threads, comments }: Picture = { threads: new Map(), comments: new Map() };
  const { items } = done(200, await tenant.request<{ items: Room[] }>('GET', '/rooms', { worker }));
  for (const room of items) {
    const whole = done(
      200,
      await tenant.request<{ threads: (Thread & { comments: Comment[] })[] }>(
        'GET',
        `/rooms/${room.roomId}?include=comments`,
        { worker },
      ),
    );
    t.equal(room.threadCount, whole.threads.length, `threadCount of ${room.roomId}`);
    t.equal(
      room.openThreadCount,
      whole.threads.filter(({ resolved }) => !resolved).length,
      `openThreadCount of ${room.roomId}`,
    );
    for (const { id, roomId, resolved, metadata, commentCount, comments: written } of whole.threads) {
      threads.set(id, { roomId, resolved, metadata });
      if (commentCount !== written.length)
        t.fail(`commentCount of ${id} is ${commentCount}, and it has ${written.length}`);
      for (const comment of written) comments.set(comment.id, comment);
    }
  }
  return { threads, comments };
}

type Tap = Pick<typeof t, 'equal' | 'fail'>;

/**
 * One writer after another change, mostly of what others change too. Refusals of what is gone meanwhile are no fault.
 */
async function write(tenant: Tenant, seed: number): Promise<Set<number>> {
  const below = numbersFrom(seed);
  const pick = <T>(from: readonly T[]): T | undefined => from[below(from.length)];
  const worker = seed % 2;
  const statuses = new Set<number>();
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await tenant.request<T>(method, path, { worker, body });
    statuses.add(answer.status);
    return answer.json;
  };
  for (let i = 0; i < WRITES_EACH; i++) {
    const room = pick(ROOMS) ?? '';
    const { items: threads = [] } = await ask<{ items?: Thread[] }>('GET', `/rooms/${room}/threads`);
    const thread = pick(threads);
    const { items: comments = [] } =
      thread === undefined ? {} : await ask<{ items?: Comment[] }>('GET', `/threads/${thread.id}/comments`);
    const comment = pick(comments);
    const userId = pick(PEOPLE);
    const kind = below(20);
    if (thread === undefined || comment === undefined || kind < 3)
      await ask<{ thread: CreatedThread }>('POST', `/rooms/${room}/threads`, { userId, body: `thread ${seed} ${i}` });
    else if (kind < 8) await ask('POST', `/threads/${thread.id}/comments`, { userId, body: `comment ${seed} ${i}` });
    else if (kind < 10)
      await ask('PATCH', `/comments/${comment.id}`, { body: `edit ${seed} ${i}`, mentions: [userId] });
    else if (kind < 12) await ask('PATCH', `/threads/${thread.id}`, { resolved: below(2) === 0 });
    else if (kind < 13) await ask('PATCH', `/threads/${thread.id}`, { metadata: { seed, i } });
    else if (kind < 15) await ask('POST', `/comments/${comment.id}/reactions`, { userId, emoji: pick(['👍', '🎉']) });
    else if (kind < 16) await ask('DELETE', `/reactions/${pick(comment.reactions)?.id ?? 'none'}`);
    else if (kind < 19) await ask('DELETE', `/comments/${comment.id}`);
    else await ask('DELETE', `/threads/${thread.id}`);
  }
  return statuses;
}

t.test('the log, a browser and the API show one picture, after many writers at once on two workers', async (t) => {
  const service = await startService(t, { workers: 2 });
  const tenant = await service.tenant('mirror');
  for (const person of PEOPLE) await addUser(tenant, person);
  const browser = await tenant.join(
    { userId: 'viewer' },
    { worker: 1, search: `?epoch=${epochOf(service.ctx.store, tenant.environment)}&since=0` },
  );

  const statuses = await Promise.all(Array.from({ length: WRITERS }, (_, seed) => write(tenant, seed + 1)));
  const seen = new Set(statuses.flatMap((set) => [...set]));
  t.strictSame(
    [...seen].filter((status) => ![200, 201, 404].includes(status)),
    [],
    'nobody is refused but for what is gone',
  );

  const events: Event[] = [];
  for (let since: number | undefined = 0; since !== undefined;) {
    const page: { items: Event[]; nextSince?: number } = done(
      200,
      await tenant.request<{ items: Event[]; nextSince?: number }>('GET', `/events?since=${since}&limit=1000`),
    );
    events.push(...page.items);
    since = page.nextSince;
  }
  t.strictSame(
    events.map(({ seq }) => seq),
    events.map((_, i) => i + 1),
    'the log has no gap',
  );
  t.ok(events.length > WRITERS * 10, `${events.length} events`);

  const fromApi = await pictureOfApi(t, tenant, 0);
  t.strictSame(await pictureOfApi(t, tenant, 1), fromApi, 'both workers answer the same');
  t.strictSame(sorted(pictureOf(events)), sorted(fromApi), 'the log says the same');
  await browser.until(() => browser.seqs.at(-1) === events.at(-1)?.seq);
  t.strictSame(
    browser.seqs,
    events.map(({ seq }) => seq),
    'the browser heard every event, once, in order',
  );
  t.strictSame(
    sorted(pictureOf(browser.frames.filter(({ seq }) => seq !== undefined) as unknown as Event[])),
    sorted(fromApi),
    'and knows the same',
  );
});

const sorted = ({ threads, comments }: Picture) => ({
  threads: [...threads].sort(([a], [b]) => (a < b ? -1 : 1)),
  comments: [...comments.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
});
