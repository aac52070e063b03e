import t from 'tap';
import { deleteComment, editComment } from '../../src/domain/comments/comments.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { deleteThread, setResolved } from '../../src/domain/comments/threads.ts';
import { createWorld, startWorker, type Worker, type World } from '../helpers/realtime.ts';
import { isEvent, type TestSocket } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';
import { emitChange } from '../../src/domain/events/emit.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

const upTo = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index + 1);
const seqOf = (socket: TestSocket): number => socket.frames[0]?.data?.['seq'] as number;

/** A client that receives a few events, disconnects, and resumes on the other worker. */
class RoamingClient {
  readonly seqs: number[] = [];
  readonly start: number;
  resumes = 0;
  readonly #world: World;
  readonly #workers: readonly Worker[];
  readonly #token: string;
  #socket: TestSocket;

  private constructor(world: World, workers: readonly Worker[], token: string, socket: TestSocket) {
    this.#world = world;
    this.#workers = workers;
    this.#token = token;
    this.#socket = socket;
    this.start = seqOf(socket);
  }

  static async start(world: World, workers: readonly Worker[], token: string): Promise<RoamingClient> {
    const [worker] = workers;
    if (worker === undefined) throw new Error('no worker');
    return new RoamingClient(world, workers, token, await worker.join(token));
  }

  /** Continues until it has received everything up to the position that `writing` resolves with. */
  async run(writing: Promise<number>): Promise<this> {
    let head: number | undefined;
    const known = writing.then((seq) => (head = seq));
    while (head === undefined || this.#position() < head) {
      const already = this.#position();
      await Promise.race([known, this.#socket.until(() => this.#position() >= already + 15)]);
      await this.#socket.terminate();
      this.seqs.push(...this.#socket.seqs);
      await this.#resume();
    }
    await this.#socket.terminate();
    this.seqs.push(...this.#socket.seqs.filter((seq) => seq <= (head ?? 0)));
    return this;
  }

  #position(): number {
    return this.#socket.seqs.at(-1) ?? this.seqs.at(-1) ?? this.start;
  }

  async #resume(): Promise<void> {
    const worker = this.#workers[++this.resumes % this.#workers.length];
    if (worker === undefined) throw new Error('no worker');
    const since = this.seqs.at(-1) ?? this.start;
    this.#socket = await worker.join(
      this.#token,
      `?epoch=${epochOf(this.#world.ctx.store, this.#world.environment)}&since=${since}`,
    );
    if (this.#socket.frames[0]?.data?.['recovered'] !== true) throw new Error(`not recovered from ${since}`);
  }
}

await t.test('every kind of change reaches every socket of the environment on every worker', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const workers = [await startWorker(t, world, {}, 'w1'), await startWorker(t, world, {}, 'w2')];
  const sockets = await Promise.all(
    workers.map(async (worker, index) => worker.join(await world.token({ userId: `user${index}` }))),
  );

  const { ctx, backend: actor } = world;
  const threadId = await backend.thread('lobby', 'first');
  const commentId = await backend.comment(threadId, 'second');
  await editComment(ctx, actor, commentId, { body: 'better' });
  await setResolved(ctx, actor, threadId, true);
  await setResolved(ctx, actor, threadId, false);
  await deleteComment(ctx, actor, commentId);
  await deleteThread(ctx, actor, threadId);

  const head = await backend.head();
  for (const socket of sockets) {
    await socket.until(() => socket.seqs.includes(head));
    const events = socket.frames.filter((frame) => isEvent(frame) && frame.type !== 'user.updated');
    t.strictSame(
      events.map(({ type }) => type),
      [
        'thread.created',
        'comment.created',
        'comment.updated',
        'thread.resolved',
        'thread.reopened',
        'comment.deleted',
        'thread.deleted',
      ],
    );
    t.match(events[0], {
      roomId: 'lobby',
      threadId,
      actor: { via: 'rest' },
      data: { thread: { id: threadId }, comment: { body: 'first' } },
    });
    t.match(events[5], { data: { commentId, threadId, threadDeleted: false } });
    t.strictSame(socket.seqs, upTo(seqOf(socket), head));
  }
});

await t.test(
  '1 000 concurrent writes: steady and reconnecting clients receive each event once, in order',
  async (t) => {
    const world = await createWorld(t);
    const backend = await Backend.of(world);
    const workers = [await startWorker(t, world, {}, 'w1'), await startWorker(t, world, {}, 'w2')] as const;
    const threads = await Promise.all(Array.from({ length: 20 }, () => backend.thread()));
    const steady = await Promise.all(
      workers.map(async (worker, index) => worker.join(await world.token({ userId: `steady${index}` }))),
    );
    const clients = await Promise.all(
      [0, 1, 2, 3].map(async (index) =>
        RoamingClient.start(world, workers, await world.token({ userId: `roaming${index}` })),
      ),
    );

    const writing = Promise.all(
      Array.from({ length: 50 }, async (_, writer) => {
        for (let i = 0; i < 20; i++)
          await backend.comment(threads[writer % threads.length] ?? '', `comment ${i} of ${writer}`);
      }),
    ).then(() => backend.head());
    const runs = clients.map((client) => client.run(writing));
    const head = await writing;

    for (const socket of steady) {
      await socket.until(() => socket.seqs.includes(head), `event ${head}`);
      t.strictSame(socket.seqs, upTo(seqOf(socket), head));
    }
    for (const { seqs, start, resumes } of await Promise.all(runs)) {
      t.strictSame(seqs, upTo(start, head));
      t.ok(resumes >= 2, `${resumes} resumes`);
    }
  },
);

await t.test('a socket receives no events of other environments', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const backend = await Backend.of(world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  const other = await createEnvironment(world.ctx, { slug: 'other' });
  const strangers = await Backend.of({
    ...world,
    environment: other,
    backend: { ...world.backend, environment: other },
  });
  await strangers.thread('lobby', 'secret');
  await backend.thread('lobby', 'ours');
  const created = await socket.frame('thread.created');
  t.match(created.data, { comment: { body: 'ours' } });
  t.strictSame(socket.frames.filter(({ type }) => type === 'thread.created').length, 1);
});

await t.test('a token with rooms receives only their events, and the position of the stream', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const backend = await Backend.of(world);
  const rooms = ['docs', 'team-*'];
  const [all, some, same] = [
    await worker.join(await world.token({ userId: 'all' })),
    await worker.join(await world.token({ userId: 'some', rooms })),
    await worker.join(await world.token({ userId: 'same', rooms })),
  ];
  const advance = (ms: number): void => {
    world.clock.advance(ms);
    worker.realtime.tick();
  };
  const created = (socket: TestSocket): (string | undefined)[] =>
    socket.frames.flatMap(({ type, roomId }) => (type === 'thread.created' ? [roomId] : []));
  const markers = (socket: TestSocket): (number | undefined)[] =>
    socket.frames.flatMap(({ type, seq }) => (type === 'seq' ? [seq] : []));
  const before = await backend.head();

  for (const room of ['lobby', 'docs', 'docs2', 'team-a', 'team', 'lobby']) await backend.thread(room);
  const head = await backend.head();
  await all.until(() => all.seqs.includes(head));
  advance(1_000);
  for (const socket of [some, same]) {
    await socket.until(() => markers(socket).length > 0, 'a marker');
    t.strictSame([created(socket), markers(socket)], [['docs', 'team-a'], [head]]);
  }
  t.strictSame(
    all.seqs.filter((seq) => seq > before),
    upTo(before, head),
  );
  t.strictSame(markers(all), []);

  await backend.thread('lobby');
  advance(999);
  await backend.thread('docs');
  await some.until(() => created(some).length === 3);
  t.equal(markers(some).length, 1, 'at most one marker a second');
  advance(1_000);
  await backend.thread('docs');
  await some.until(() => created(some).length === 4);
  t.equal(markers(some).length, 1, 'no marker after a visible event');
});

/**
 * Emits one event per entry in one commit: one in the room `docs` for 'room', else a notification about a comment in it
 * for that user.
 */
async function emit({ ctx, environment }: World, ...receivers: readonly string[]): Promise<void> {
  await ctx.store.transact(async (tx) => {
    for (const receiver of receivers) {
      const change = {
        at: ctx.clock.now(),
        roomId: 'docs',
        threadId: 'th_1',
        userId: 'bot',
        via: 'rest',
        data: '{}',
      } as const;
      if (receiver === 'room') emitChange(tx, environment, { ...change, type: 'thread.updated' });
      else emitChange(tx, environment, { ...change, type: 'notification.created', receiverId: receiver });
    }
  });
}

await t.test(
  'events of one user arrive in order among those of everyone, on every socket that sees their room',
  async (t) => {
    const world = await createWorld(t);
    const worker = await startWorker(t, world);
    const join = async (userId: string, rooms?: string[]): Promise<TestSocket> =>
      worker.join(await world.token({ userId, ...(rooms && { rooms }) }));
    const [bob, again, elsewhere, ann] = [
      await join('bob'),
      await join('bob', ['docs']),
      await join('bob', ['other']),
      await join('ann'),
    ];
    const received = (socket: TestSocket, from: number): string[] =>
      socket.frames.flatMap((frame) =>
        isEvent(frame) && (frame.seq ?? 0) > from ? [`${(frame.seq ?? 0) - from} ${frame.type}`] : [],
      );
    const from = await (await Backend.of(world)).head();
    await emit(world, 'room', 'bob', 'bob', 'room', 'bob', 'carl', 'bob');
    const late = await join('bob');
    await emit(world, 'room', 'bob');
    const [common, own] = ['thread.updated', 'notification.created'];
    const all = [
      `1 ${common}`,
      `2 ${own}`,
      `3 ${own}`,
      `4 ${common}`,
      `5 ${own}`,
      `7 ${own}`,
      `8 ${common}`,
      `9 ${own}`,
    ];
    for (const socket of [bob, again]) {
      await socket.until(() => received(socket, from).length >= all.length, 'all events');
      t.strictSame(received(socket, from), all);
    }
    await late.until(() => received(late, from).length >= 2);
    t.strictSame(received(late, from), all.slice(-2), 'only what came after it had joined');
    await ann.until(() => received(ann, from).length >= 3);
    t.strictSame(received(ann, from), [`1 ${common}`, `4 ${common}`, `8 ${common}`]);
    t.strictSame(received(elsewhere, from), []);
  },
);

await t.test(
  'a socket receives the position of events for other users after five seconds, or within a second after 500',
  async (t) => {
    const world = await createWorld(t);
    const worker = await startWorker(t, world);
    const ann = await worker.join(await world.token({ userId: 'ann' }));
    const backend = await Backend.of(world);
    const advance = (ms: number): void => {
      world.clock.advance(ms);
      worker.realtime.tick();
    };
    const markers = (): (number | undefined)[] => ann.frames.flatMap(({ type, seq }) => (type === 'seq' ? [seq] : []));
    const event = async (): Promise<void> => {
      await emit(world, 'room');
      const seq = await backend.head();
      await ann.until(() => ann.seqs.includes(seq));
    };
    advance(1_000);
    await emit(world, 'bob');
    for (let second = 1; second < 5; second++) advance(1_000);
    await event();
    t.strictSame(markers(), [], 'none before');
    advance(1_000);
    await event();
    t.strictSame(markers(), [], 'none if an event came first');
    await emit(world, 'bob');
    for (let second = 1; second <= 5; second++) advance(1_000);
    await event();
    t.strictSame(markers(), [(await backend.head()) - 1]);
    await emit(world, ...Array.from({ length: 499 }, () => 'bob'));
    advance(1_000);
    await event();
    t.equal(markers().length, 1, '499 events wait');
    await emit(world, ...Array.from({ length: 500 }, () => 'bob'));
    advance(1_000);
    await event();
    t.strictSame(markers().slice(1), [(await backend.head()) - 1]);
  },
);

await t.test('events that belong to no room reach confined tokens too (decision 24)', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const some = await worker.join(await world.token({ userId: 'some', rooms: ['docs'] }));
  await worker.join(await world.token({ userId: 'newcomer', name: 'New' }));
  await some.until(
    () => some.frames.some(({ type, data }) => type === 'user.updated' && data?.['name'] === 'New'),
    'the newcomer',
  );
});
