import fc from 'fast-check';
import t from 'tap';
import { announceNode, listNodes } from '../../src/domain/nodes.ts';
import { presenceKey } from '../../src/domain/rooms/presence.ts';
import { anyCharacter } from '../helpers/any-character.ts';
import { refresh, restRows, sees, startTwoWorkers } from '../helpers/presence.ts';

/** A membership with a field that another version may have written in another form, or left out. */
const nearly = fc
  .record({
    userId: fc.constant('eve'),
    connectionId: fc.constant('foreign'),
    joinedAt: fc.constant(1),
    activeAt: fc.constant(1),
    state: fc.constant({}),
    stateAgeMs: fc.constant(null),
  })
  .chain((membership) =>
    fc
      .tuple(
        fc.constantFrom(...Object.keys(membership)),
        fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant(undefined), fc.constant(1e300)),
      )
      .map(([field, value]) => JSON.stringify({ ...membership, [field]: value })),
  );
const anything = fc.oneof(fc.json({ maxDepth: 2 }), fc.string({ unit: anyCharacter }), nearly);

t.test('whatever others write into a room of shared memory, its users are shown', async (t) => {
  const { world, one, two, enter } = await startTwoWorkers(t);
  const { ctx, environment } = world;
  const key = presenceKey(environment.id, 'lobby');
  const [ann, bob] = [await enter(one, 'ann'), await enter(two, 'bob')];
  await sees(ann, 'ann', 'bob');
  await fc.assert(
    fc.asyncProperty(anything, async (text) => {
      await ctx.shared.put({ key, name: 'foreign', owner: '', text });
      const rows = await restRows(world);
      const users = rows.map(({ userId }) => userId).filter((userId) => userId !== 'eve');
      t.strictSame(users, ['ann', 'bob'], text);
    }),
    { numRuns: 300 },
  );
  for (const text of ['', 'null', '[]', '{"userId":"eve"}', '{"userId":"ann","connectionId":"foreign"}']) {
    await ctx.shared.put({ key, name: 'foreign', owner: '', text });
    await refresh(bob);
    const { type } = await ann.request('room.join', { roomId: 'lobby' });
    t.equal(type, 'ok', text);
    await sees(await enter(two, 'cem'), 'ann', 'bob', 'cem');
  }
});

t.test('a record of a node in another form hides no other node', async (t) => {
  const { world } = await startTwoWorkers(t);
  const { ctx } = world;
  const facts = { node: 'n1', worker: 'web-1', host: 'h', version: '1', startedAt: 1 };
  await ctx.shared.beginLease('known');
  await announceNode(ctx, 'known', facts);
  await fc.assert(
    fc.asyncProperty(anything, async (text) => {
      await ctx.shared.put({ key: 'nodes', name: 'foreign', owner: '', text });
      t.ok(
        (await listNodes(ctx)).some(({ node }) => node === 'n1'),
        text,
      );
    }),
    { numRuns: 300 },
  );
});
