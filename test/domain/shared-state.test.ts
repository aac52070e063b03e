import t from 'tap';
import * as Y from 'yjs';
import type { Actor } from '../../src/domain/access/actor.ts';
import type { Context } from '../../src/domain/context.ts';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import {
  clearState,
  COMPACT_EVERY,
  mergesByDefault,
  readState,
  renderState,
  renderWritten,
  writeState,
} from '../../src/domain/rooms/shared-state.ts';
import { getRoom, listRooms } from '../../src/domain/rooms/rooms.ts';
import { createWorld, itemsOf, query, START, type World } from './world.ts';

const at = (offset: number): string => new Date(START + offset).toISOString();
const always = (): boolean => true;

const put = (ctx: Context, actor: Actor, bytes: Uint8Array, roomId = 'room') =>
  writeState(ctx, actor, roomId, bytes, false, always);
const merge = (ctx: Context, actor: Actor, bytes: Uint8Array, roomId = 'room') =>
  writeState(ctx, actor, roomId, bytes, true, always);

async function bytesOf(
  ctx: Context,
  actor: Actor,
  roomId = 'room',
  stateVector: Uint8Array | null = null,
): Promise<Buffer | null> {
  const { base64 } = await readState(ctx, actor, roomId, stateVector, always);
  return base64 === null ? null : Buffer.from(base64, 'base64');
}

/** A document with a text, from a new client. */
function documentWith(text: string): Y.Doc {
  const document = new Y.Doc();
  document.getText('text').insert(0, text);
  return document;
}

async function stored({ ctx, backend }: World): Promise<Y.Doc> {
  const document = new Y.Doc();
  Y.applyUpdate(document, (await bytesOf(ctx, backend)) ?? new Uint8Array());
  return document;
}

await t.test('the state of a room without one is empty, and the room need not exist', async (t) => {
  const world = await createWorld(t);
  const state = await readState(world.ctx, world.ann, 'ro/öm', null, always);
  t.equal(
    renderState('ro/öm', state),
    '{"roomId":"ro/öm","state":null,"version":0,"sizeBytes":0,"contentType":"application/octet-stream","updatedAt":null,"updatedBy":null}',
  );
  t.equal(state.etag, '"0-e3b0c44298fc1c14"');
  t.strictSame(itemsOf(await listRooms(world.ctx, world.backend, query('rooms'))), []);
});

await t.test('a write replaces the state, creates the room, and emits an event without the bytes', async (t) => {
  const world = await createWorld(t);
  world.clock.advance(1000);
  const first = await put(world.ctx, world.ann, Buffer.from([0, 1, 2, 0xff]));
  t.equal(renderWritten('room', first, false), `{"roomId":"room","version":1,"sizeBytes":4,"updatedAt":"${at(1000)}"}`);
  t.match(first.etag, /^"1-[0-9a-f]{16}"$/);
  t.strictSame(await bytesOf(world.peer, world.backend), Buffer.from([0, 1, 2, 0xff]));
  t.match(JSON.parse(renderState('room', await readState(world.peer, world.bob, 'room', null, always))), {
    roomId: 'room',
    state: 'AAEC/w==',
    version: 1,
    sizeBytes: 4,
    contentType: 'application/octet-stream',
    updatedAt: at(1000),
    updatedBy: 'ann',
  });
  t.match(JSON.parse((await getRoom(world.ctx, world.backend, 'room', { includeComments: false })).text), {
    room: { threadCount: 0, createdAt: at(1000) },
    threads: [],
  });
  const data = { roomId: 'room', version: 1, sizeBytes: 4, updatedAt: at(1000), updatedBy: 'ann' };
  const [event] = await world.events();
  t.match(event, { type: 'p2p.state.updated', roomId: 'room', actor: { userId: 'ann', via: 'ws' } });
  t.strictSame(event?.data, data);
  t.notOk('threadId' in (event ?? {}));

  world.clock.advance(1000);
  const second = await put(world.peer, world.backend, Buffer.from('other'));
  t.match(second.record, { version: 2, sizeBytes: 5, updatedBy: null });
  t.equal(String(await bytesOf(world.ctx, world.ann)), 'other');
});

await t.test('clearing removes the state, increments the version, and emits one event', async (t) => {
  const world = await createWorld(t);
  t.equal(await clearState(world.ctx, world.backend, 'room'), '{"deleted":true}');
  t.strictSame(await world.events(), []);
  await put(world.ctx, world.ann, Buffer.from('x'));
  t.equal(await clearState(world.peer, world.backend, 'room'), '{"deleted":true}');
  t.equal(await clearState(world.ctx, world.backend, 'room'), '{"deleted":true}');
  const state = await readState(world.ctx, world.backend, 'room', null, always);
  t.match(JSON.parse(renderState('room', state)), {
    state: null,
    version: 2,
    sizeBytes: 0,
    updatedAt: null,
    updatedBy: null,
  });
  t.match(await world.events(), [
    { type: 'p2p.state.updated' },
    { type: 'p2p.state.cleared', roomId: 'room', data: { roomId: 'room', version: 2, sizeBytes: 0, updatedBy: null } },
  ]);
  t.equal((await put(world.ctx, world.ann, Buffer.from('x'))).record.version, 3);
});

await t.test('permissions: members and full keys write, all actors read within their rooms, keys clear', async (t) => {
  const world = await createWorld(t);
  const viewer = { ...world.ann, role: 'viewer' as const };
  const elsewhere = { ...world.ann, rooms: ['docs/*'] };
  await t.rejects(put(world.ctx, viewer, Buffer.from('x')), { code: 'forbidden' });
  await t.rejects(put(world.ctx, elsewhere, Buffer.from('x')), { code: 'forbidden' });
  await t.rejects(put(world.ctx, { ...world.backend, scope: 'moderate' }, Buffer.from('x')), { code: 'forbidden' });
  await t.rejects(bytesOf(world.ctx, elsewhere), { code: 'forbidden' });
  await t.resolves(bytesOf(world.ctx, viewer));
  await t.resolves(put(world.ctx, elsewhere, Buffer.from('x'), 'docs/a'));
  await t.rejects(clearState(world.ctx, { ...world.ann, role: 'moderator' }, 'room'), { code: 'forbidden' });
  await t.rejects(clearState(world.ctx, { ...world.backend, scope: 'read' }, 'room'), { code: 'forbidden' });
  await t.rejects(put(world.ctx, world.backend, Buffer.from('x'), 'r'.repeat(513)), {
    message: 'roomId must be 1 to 512 characters',
  });
});

await t.test('a write whose precondition fails writes nothing', async (t) => {
  const world = await createWorld(t);
  const under = (precondition: Parameters<typeof writeState>[5]) =>
    writeState(world.ctx, world.backend, 'room', Buffer.from('x'), false, precondition);
  await under((etag, exists) => !exists && etag === '"0-e3b0c44298fc1c14"');
  await t.rejects(
    under((_etag, exists) => !exists),
    { code: 'precondition_failed', message: /version 1$/ },
  );
  const { etag } = await readState(world.ctx, world.backend, 'room', null, always);
  const racing = await Promise.allSettled(
    [world.ctx, world.peer, world.ctx, world.peer].map((ctx, i) =>
      writeState(ctx, world.backend, 'room', Buffer.from([i]), false, (present) => present === etag),
    ),
  );
  t.equal(
    racing.filter(({ status }) => status === 'fulfilled').length,
    1,
    'of many who have seen the same, one writes',
  );
  t.equal((await world.events()).length, 2);
});

await t.test('an empty state and one above the bound of the environment are refused', async (t) => {
  const world = await createWorld(t);
  await t.rejects(put(world.ctx, world.backend, new Uint8Array()), {
    code: 'invalid_request',
    message: 'The state must not be empty',
  });
  await t.resolves(put(world.ctx, world.backend, Buffer.alloc(10 * 1024 * 1024)));
  await t.rejects(put(world.ctx, world.backend, Buffer.alloc(10 * 1024 * 1024 + 1)), {
    code: 'payload_too_large',
    message: 'State too large (max 10MB)',
  });
  const environment = await updateEnvironment(world.ctx, world.environment.id, {
    settings: { maxP2pStateMb: 1, crdt: 'yjs' },
  });
  t.ok(mergesByDefault(environment));
  const small = { ...world.backend, environment };
  await t.rejects(put(world.ctx, small, Buffer.alloc(1024 * 1024 + 1)), { message: 'State too large (max 1MB)' });
  const halves = ['a', 'b'].map((letter) => Y.encodeStateAsUpdate(documentWith(letter.repeat(600_000))));
  await merge(world.ctx, small, halves[0] ?? new Uint8Array(), 'merged');
  await t.rejects(merge(world.ctx, small, halves[1] ?? new Uint8Array(), 'merged'), {
    message: 'State too large (max 1MB)',
  });
});

await t.test('merging keeps the content of both documents, in any order', async (t) => {
  const world = await createWorld(t);
  const [one, two] = [documentWith('one'), documentWith('two')];
  await merge(world.ctx, world.ann, Y.encodeStateAsUpdate(one));
  await merge(world.peer, world.bob, Y.encodeStateAsUpdate(two));
  Y.applyUpdate(one, Y.encodeStateAsUpdate(two));
  t.equal((await stored(world)).getText('text').toJSON(), one.getText('text').toJSON());
  const before = await readState(world.ctx, world.ann, 'room', null, always);
  const again = await merge(world.ctx, world.ann, Y.encodeStateAsUpdate(two));
  t.equal(again.etag, before.etag, 'what is there already changes nothing');
  t.equal((await world.events()).length, 2);

  const late = new Y.Doc();
  Y.applyUpdate(late, Y.encodeStateAsUpdate(two));
  const lacking = await bytesOf(world.ctx, world.ann, 'room', Y.encodeStateVector(late));
  Y.applyUpdate(late, lacking ?? new Uint8Array());
  t.equal(late.getText('text').toJSON(), one.getText('text').toJSON(), 'the difference is all that is needed');
  t.ok((lacking?.byteLength ?? Infinity) < (before.base64?.length ?? 0));
});

await t.test('invalid updates are refused, and nothing is stored', async (t) => {
  const world = await createWorld(t);
  const good = Y.encodeStateAsUpdate(documentWith('a text of some length'));
  const garbage: [name: string, bytes: Uint8Array][] = [
    ['one byte', Buffer.from([5])],
    ['text', Buffer.from('hello world')],
    ['JSON', Buffer.from('{"a":1}')],
    ['noise', Buffer.alloc(300, 0xa7)],
    ['an update with bytes after it', Buffer.concat([good, Buffer.from('trailing')])],
    ['an update of encoding 2', Y.encodeStateAsUpdateV2(documentWith('a text of some length'))],
    ['a sync message', Buffer.concat([Buffer.from([0, 0, good.length]), good])],
    ...Array.from({ length: good.length - 1 }, (_, i): [string, Uint8Array] => [
      `cut at ${i + 1}`,
      good.slice(0, i + 1),
    ]),
  ];
  const refused = { code: 'invalid_request', message: 'The state must be a Yjs update (encoding 1)' };
  for (const [name, bytes] of garbage)
    await t.rejects(merge(world.ctx, world.ann, bytes), refused, `${name}, as the first`);
  t.equal((await readState(world.ctx, world.ann, 'room', null, always)).record.version, 0);
  t.strictSame(itemsOf(await listRooms(world.ctx, world.backend, query('rooms'))), []);
  await merge(world.ctx, world.ann, good.slice());
  t.strictSame(await bytesOf(world.ctx, world.ann), Buffer.from(good));
  for (const [name, bytes] of garbage)
    await t.rejects(merge(world.ctx, world.ann, bytes), refused, `${name}, over a state`);
  t.strictSame(await bytesOf(world.ctx, world.ann), Buffer.from(good));
  await t.rejects(bytesOf(world.ctx, world.ann, 'room', Buffer.from([9, 9])), {
    code: 'invalid_request',
    message: 'sv must be a Yjs state vector as base64url',
  });

  await put(world.ctx, world.ann, Buffer.from('automerge'), 'opaque');
  const notYjs = { code: 'invalid_request', message: /^The stored state of this room is not a Yjs document/ };
  await t.rejects(merge(world.ctx, world.ann, good, 'opaque'), notYjs);
  await t.rejects(bytesOf(world.ctx, world.ann, 'opaque', Buffer.from([0])), notYjs);
});

await t.test('every hundredth merge compacts the document', async (t) => {
  const world = await createWorld(t);
  const document = new Y.Doc();
  const text = document.getText('text');
  const sizes: number[] = [];
  for (let i = 0; i < COMPACT_EVERY; i++) {
    const before = Y.encodeStateVector(document);
    text.delete(0, text.length);
    text.insert(0, `${i} ${'x'.repeat(100)}`);
    sizes.push((await merge(world.ctx, world.ann, Y.encodeStateAsUpdate(document, before))).record.sizeBytes);
  }
  t.ok((sizes.at(-1) ?? 0) < (sizes.at(-2) ?? 0) / 3, `${sizes.at(-2)} bytes became ${sizes.at(-1)}`);
  t.equal((await stored(world)).getText('text').toJSON(), text.toJSON());
  t.equal((await readState(world.ctx, world.ann, 'room', null, always)).record.merges, 0);
  text.insert(0, 'still ');
  await merge(world.ctx, world.ann, Y.encodeStateAsUpdate(document));
  t.equal((await stored(world)).getText('text').toJSON(), text.toJSON());
});

await t.test('concurrent merges on two workers lose nothing', async (t) => {
  const world = await createWorld(t);
  const [one, two] = [new Y.Doc(), new Y.Doc()];
  const write = async (ctx: Context, actor: Actor, document: Y.Doc, name: string): Promise<void> => {
    for (let i = 0; i < 25; i++) {
      document.getArray('lines').push([`${name} ${i}`]);
      await merge(ctx, actor, Y.encodeStateAsUpdate(document));
      Y.applyUpdate(document, (await bytesOf(ctx, actor, 'room', Y.encodeStateVector(document))) ?? new Uint8Array());
    }
  };
  await Promise.all([write(world.ctx, world.ann, one, 'ann'), write(world.peer, world.bob, two, 'bob')]);
  const final = (await bytesOf(world.ctx, world.ann)) ?? new Uint8Array();
  for (const document of [one, two]) Y.applyUpdate(document, final);
  const lines = one.getArray<string>('lines').toJSON() as string[];
  t.strictSame(two.getArray('lines').toJSON(), lines, 'both have the same');
  t.equal(new Set(lines).size, 50, 'and all of it');
  t.strictSame(
    lines.filter((line) => line.startsWith('ann')),
    Array.from({ length: 25 }, (_, i) => `ann ${i}`),
  );
});
