import { setImmediate as turnOver } from 'node:timers/promises';
import t from 'tap';
import * as Y from 'yjs';
import { YjsThread } from '../../src/adapters/yjs/yjs-thread.ts';
import { CrdtService } from '../../src/domain/rooms/crdt.ts';
import { COMPACT_EVERY, readState, writeState } from '../../src/domain/rooms/shared-state.ts';
import type { Actor } from '../../src/domain/access/actor.ts';
import type { Context } from '../../src/domain/context.ts';
import type { Crdt, CrdtFault, CrdtOutcome } from '../../src/ports/crdt.ts';
import { baseText, documentWith, insertsAtOneOrigin } from '../fixtures/yjs.ts';
import { createWorld } from './world.ts';

const always = (): boolean => true;
const UPDATE = Uint8Array.from([1, 2, 3]);

const merge = (ctx: Context, actor: Actor, roomId: string, bytes: Uint8Array = UPDATE) =>
  writeState(ctx, actor, roomId, bytes, true, always);

/** A CRDT implementation whose operations run until the test ends them, and report the duration that the test sets. */
class HeldCrdt implements Crdt {
  readonly begun: string[] = [];
  readonly #ends: (() => void)[] = [];
  ms = 1;

  merge(_stored: Uint8Array | null, update: Uint8Array): Promise<CrdtOutcome> {
    return this.#hold(`merge ${Buffer.from(update.subarray(0, 3)).toString()}`, update);
  }

  diff(): Promise<CrdtOutcome> {
    return this.#hold('diff', 'time');
  }

  compact(): Promise<CrdtOutcome> {
    return this.#hold('compact', 'memory');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Waits until an operation has begun. */
  async untilBegun(): Promise<void> {
    while (this.begun.length === 0) await turnOver();
  }

  /** Ends operations as they begin until `done` settles, and returns its result. */
  async endAll<T>(done: Promise<T>): Promise<T> {
    let isOver = false;
    const settled = done.finally(() => (isOver = true));
    settled.catch(() => undefined);
    while (!isOver) {
      this.#ends.shift()?.();
      await turnOver();
    }
    return settled;
  }

  #hold(name: string, result: Uint8Array | CrdtFault): Promise<CrdtOutcome> {
    this.begun.push(name);
    return new Promise((resolve) => this.#ends.push(() => resolve({ result, ms: this.ms })));
  }
}

function createService(crdt: Crdt, mergeSecondsPerMinute = 0): CrdtService {
  return new CrdtService(crdt, { crdt: { mergeSecondsPerMinute } });
}

t.test('users are served in turn: one with many requests does not delay others', async (t) => {
  const world = await createWorld(t);
  const engine = new HeldCrdt();
  const ctx: Context = { ...world.ctx, crdt: createService(engine) };
  const flood = Array.from({ length: 20 }, (_, i) => merge(ctx, world.ann, `room${i}`, Buffer.from('ann')));
  await engine.untilBegun();
  const bob = merge(ctx, world.bob, 'other', Buffer.from('bob'));
  t.match(await engine.endAll(bob), { record: { version: 1 } });
  t.strictSame(engine.begun.slice(0, 3), ['merge ann', 'merge ann', 'merge bob']);
  await engine.endAll(Promise.all(flood));
});

t.test('the time of each user is counted; once it is used up, requests are refused with Retry-After', async (t) => {
  const world = await createWorld(t);
  const engine = new HeldCrdt();
  engine.ms = 6_000;
  const ctx: Context = { ...world.ctx, crdt: createService(engine, 10) };
  await engine.endAll(merge(ctx, world.ann, 'room1'));
  const refused = {
    code: 'rate_limited',
    message: 'Merging and comparing shared states took more than 10s within a minute. Try again in 12s',
    retryAfter: 12,
  };
  const [, late] = await engine.endAll(
    Promise.allSettled([merge(ctx, world.ann, 'room2'), merge(ctx, world.ann, 'room3')]),
  );
  t.match(late, { status: 'rejected', reason: refused }, 'one that waited meanwhile');
  await t.rejects(merge(ctx, world.ann, 'room4'), refused);
  await t.rejects(
    readState(ctx, world.ann, 'room1', Buffer.from([0]), always),
    refused,
    'comparing is counted with merging',
  );
  await t.resolves(readState(ctx, world.ann, 'room1', null, always), 'the whole state is free');
  await t.resolves(writeState(ctx, world.ann, 'room1', UPDATE, false, always), 'and so is replacing it');
  await t.resolves(engine.endAll(merge(ctx, world.bob, 'other')), 'others are not concerned');
  world.clock.advance(12_000);
  await t.resolves(engine.endAll(merge(ctx, world.ann, 'room4')));
});

t.test('the waiting requests of one user are bounded in number and bytes', async (t) => {
  const world = await createWorld(t);
  const engine = new HeldCrdt();
  const ctx: Context = { ...world.ctx, crdt: createService(engine) };
  const refused = {
    code: 'rate_limited',
    message: /^Too many shared states wait to be merged: at most 32 requests with 32 MB per user/,
    retryAfter: 1,
  };
  const many = Array.from({ length: 32 }, () => merge(ctx, world.ann, 'room'));
  await t.rejects(merge(ctx, world.ann, 'room'), refused);
  const large = [1, 2, 3].map(() => merge(ctx, world.bob, 'room', Buffer.alloc(10 * 1024 * 1024)));
  await t.rejects(merge(ctx, world.bob, 'room', Buffer.alloc(3 * 1024 * 1024)), refused);
  await engine.endAll(Promise.all([...many, ...large]));
});

t.test('work that exceeds its bounds is refused, and the state does not change', async (t) => {
  const world = await createWorld(t);
  // Only what must exceed the bound has it: the rest may take as long as a busy machine needs.
  const patient = new YjsThread({ timeMs: () => 60_000 });
  const impatient = new YjsThread({ timeMs: (bytes) => (bytes > 50_000 ? 500 : 60_000) });
  const crdt: Crdt = {
    merge: (stored, update) => patient.merge(stored, update),
    diff: (stored, stateVector) => patient.diff(stored, stateVector),
    compact: (stored) => impatient.compact(stored),
    close: async () => void (await Promise.all([patient.close(), impatient.close()])),
  };
  t.teardown(() => crdt.close());
  const ctx: Context = { ...world.ctx, crdt: createService(crdt) };
  await merge(ctx, world.ann, 'room', baseText(9_000));
  const small = (): Uint8Array => Y.encodeStateAsUpdate(documentWith('a'));
  for (let i = 2; i < COMPACT_EVERY; i++) await merge(ctx, world.ann, 'room', small());
  const before = await readState(ctx, world.ann, 'room', null, always);
  t.equal(before.record.merges, COMPACT_EVERY - 1);
  await t.rejects(merge(ctx, world.ann, 'room', insertsAtOneOrigin(9_000)), {
    code: 'state_too_complex',
    message: /takes more time than the server allows/,
  });
  t.strictSame(await readState(ctx, world.ann, 'room', null, always), before, 'nothing of it is stored');
  t.match(await merge(ctx, world.bob, 'room', small()), { record: { merges: 0 } }, 'the next merge works');

  await writeState(ctx, world.ann, 'bad', baseText(9_000), false, always);
  await merge(ctx, world.ann, 'bad', insertsAtOneOrigin(9_000));
  for (let i = 2; i < COMPACT_EVERY; i++) await merge(ctx, world.ann, 'bad', small());
  t.match(
    await merge(ctx, world.bob, 'bad', small()),
    { record: { merges: 0 } },
    'a state that cannot be compacted still takes updates',
  );
  t.match(await merge(ctx, world.bob, 'bad', small()), { record: { merges: 1 } });
});
