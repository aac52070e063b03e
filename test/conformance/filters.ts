import type { Test } from 'tap';
import type { DraftComment, FilterActor, WriteFilter, WriteFilterTypes } from '../../src/model/filter.ts';
import type { FilterOutcome, Filters } from '../../src/ports/filters.ts';

/** A filter that a plugin has registered. */
export interface RegisteredFilter {
  readonly plugin: string;
  readonly name: WriteFilter;
  /** What its failure means. */
  readonly onError: 'open' | 'closed' | 'hold';
  /** The slug of the only environment in which it is enabled; undefined for all. */
  readonly only?: string | undefined;
  /** Returns what the function of the plugin returns, or throws what it throws. */
  readonly run: (payload: unknown) => unknown;
}

const environment = { id: 'env_1', slug: 'default' };
const actor: FilterActor = { kind: 'user', userId: 'ann', role: 'member' };
const comment: DraftComment = {
  userId: 'ann',
  body: 'Hello',
  mentions: ['bob'],
  metadata: { kept: 1 },
  attachmentIds: [],
};

/** A payload of each name. */
const payloads: { [N in WriteFilter]: WriteFilterTypes[N]['payload'] } = {
  'comment.create': { roomId: 'r', threadId: 'th_1', comment },
  'comment.update': { roomId: 'r', threadId: 'th_1', commentId: 'cm_1', before: comment, comment },
  'thread.create': { roomId: 'r', position: null, metadata: comment.metadata, comment },
  'thread.resolve': { roomId: 'r', threadId: 'th_1', resolved: true },
  'reaction.create': { roomId: 'r', threadId: 'th_1', commentId: 'cm_1', userId: 'ann', emoji: '👍' },
  'upload.create': { userId: 'ann', filename: 'a.png', mimeType: 'image/png', sizeBytes: null },
  'connection.open': { userId: 'ann', rooms: null, origin: 'https://example.com' },
};
const names = Object.keys(payloads) as WriteFilter[];
const holdable: readonly WriteFilter[] = ['comment.create', 'comment.update', 'thread.create'];
const passed: FilterOutcome = { outcome: 'pass', fields: {} };

/** Code of plugins may throw anything. */
const throws = (value: unknown) => () => Promise.reject(value as Error);

/** An object of which no property can be read. */
function unreadable<T extends object>(object: T): T {
  const refuse = (): never => {
    throw new Error('not readable');
  };
  return new Proxy(object, { get: refuse, ownKeys: refuse });
}

const runAll = (filters: Filters): Promise<FilterOutcome[]> =>
  Promise.all(names.map((name) => filters.run(name, environment, actor, payloads[name])));

/** Asserts what ports/filters.ts says of all filters, whatever they decide. */
export async function anyFilters(t: Test, filters: Filters): Promise<void> {
  const before = JSON.stringify(payloads);
  const outcomes = await runAll(filters);
  for (const [i, name] of names.entries()) {
    const result = outcomes[i];
    t.equal(typeof filters.has(name, environment), 'boolean', `${name}: has does not wait`);
    if (!filters.has(name, environment)) t.strictSame(result, passed, name);
    if (result?.outcome === 'hold') t.ok(holdable.includes(name), `${name} may be held`);
    if (result !== undefined && result.outcome !== 'reject')
      t.ok(
        Object.keys(result.fields).every((field) => ['body', 'mentions', 'metadata'].includes(field)),
        name,
      );
  }
  t.equal(JSON.stringify(payloads), before, 'the payload is not changed');
}

/**
 * Asserts every sentence of ports/filters.ts for an implementation, except that of the deadline: that is one of the
 * threads of plugins.
 *
 * @param open filters of plugins, in the order in which they run
 */
export async function filtersConformance(
  t: Test,
  open: (registered: readonly RegisteredFilter[]) => Filters,
): Promise<void> {
  /** Filters of one name, each of a plugin of its own, that fail openly. */
  const chain = (
    name: WriteFilter,
    runs: Readonly<Record<string, RegisteredFilter['run']>>,
    onError: RegisteredFilter['onError'] = 'open',
  ): Filters => open(Object.entries(runs).map(([plugin, run]) => ({ plugin, name, onError, run })));
  const create = (filters: Filters, check?: (comment: DraftComment) => void): Promise<FilterOutcome> =>
    filters.run('comment.create', environment, actor, payloads['comment.create'], check);
  const never = (): never => {
    throw new Error('this filter must not be called');
  };

  await t.test(
    'has says for each name and environment whether a plugin filters it; what none filters passes',
    async (t) => {
      const filters = open([
        { plugin: 'a', name: 'comment.create', onError: 'open', run: () => undefined },
        { plugin: 'b', name: 'upload.create', onError: 'closed', only: 'other', run: never },
      ]);
      t.strictSame(
        names.filter((name) => filters.has(name, environment)),
        ['comment.create'],
      );
      t.strictSame(
        names.filter((name) => filters.has(name, { id: 'env_2', slug: 'other' })),
        ['comment.create', 'upload.create'],
      );
      t.strictSame(
        await runAll(filters),
        names.map(() => passed),
      );
      await anyFilters(t, filters);
      await anyFilters(t, open([]));
    },
  );

  await t.test(
    'filters run in order, each with what those before it have changed, and the outcome has all changes',
    async (t) => {
      const seen: unknown[] = [];
      const note = (patch: unknown) => (payload: unknown) => {
        seen.push(payload);
        return patch;
      };
      const filters = chain('comment.create', {
        a: note({ body: 'one' }),
        b: note(undefined),
        c: note({ body: 'two', mentions: [] }),
        d: note(null),
        e: note({ metadata: { x: true } }),
      });
      t.strictSame(await create(filters), {
        outcome: 'pass',
        fields: { body: 'two', mentions: [], metadata: { x: true } },
      });
      const from = payloads['comment.create'];
      const two = { ...comment, body: 'two', mentions: [] };
      t.same(seen, [
        from,
        { ...from, comment: { ...comment, body: 'one' } },
        { ...from, comment: { ...comment, body: 'one' } },
        { ...from, comment: two },
        { ...from, comment: two },
      ]);
      await anyFilters(t, filters);
    },
  );

  await t.test('the first rejection or hold stops, and names its plugin', async (t) => {
    for (const status of [400, 403] as const) {
      for (const name of names) {
        const filters = chain(
          name,
          { a: () => undefined, b: () => ({ outcome: 'reject', message: 'No links', status }), c: never },
          'closed',
        );
        t.strictSame(await filters.run(name, environment, actor, payloads[name]), {
          outcome: 'reject',
          plugin: 'b',
          message: 'No links',
          status,
        });
        await anyFilters(t, filters);
      }
    }
    for (const name of holdable) {
      const filters = chain(
        name,
        { a: () => ({ body: 'clean' }), b: () => ({ outcome: 'hold', reason: 'rude' }), c: never },
        'closed',
      );
      t.strictSame(
        await filters.run(name, environment, actor, payloads[name]),
        { outcome: 'hold', plugin: 'b', reason: 'rude', fields: { body: 'clean' } },
        'with what earlier filters changed',
      );
    }
  });

  await t.test('a filter that fails counts as its onError says, and nothing makes run reject', async (t) => {
    const failures: Readonly<Record<string, RegisteredFilter['run']>> = {
      throws: never,
      rejects: () => Promise.reject(new Error('later')),
      'throws undefined': throws(undefined),
      'throws null': throws(null),
      'throws an object without a prototype': throws(Object.create(null)),
      'throws an object that cannot be read': throws(unreadable({})),
      'throws an error that cannot be read': throws(unreadable(new Error('x'))),
      'returns a text': () => 'no',
      'returns a list': () => [],
      'returns an object that cannot be read': () => unreadable({}),
      'changes what must not change': () => ({ userId: 'eve' }),
      'changes to a wrong type': () => ({ body: 7 }),
    };
    for (const [failure, run] of Object.entries(failures)) {
      for (const name of names) {
        const after = { a: run, b: () => (holdable.includes(name) ? { body: 'from b' } : undefined) };
        const result = (onError: RegisteredFilter['onError']): Promise<FilterOutcome> =>
          chain(name, after, onError).run(name, environment, actor, payloads[name]);
        const what = `${name}: ${failure}`;
        t.strictSame(
          await result('open'),
          { outcome: 'pass', fields: holdable.includes(name) ? { body: 'from b' } : {} },
          what,
        );
        t.match(await result('closed'), { outcome: 'reject', plugin: 'a', message: /./, status: 403 }, what);
        t.match(
          await result('hold'),
          holdable.includes(name) ? { outcome: 'hold', plugin: 'a', fields: {} } : { outcome: 'reject', plugin: 'a' },
          what,
        );
      }
    }
    for (const name of names.filter((name) => !holdable.includes(name))) {
      const holding = chain(name, { a: () => ({ outcome: 'hold', reason: 'no' }) });
      t.strictSame(
        await holding.run(name, environment, actor, payloads[name]),
        passed,
        `${name}: only comments and threads can be held`,
      );
    }
  });

  await t.test('a change that the check refuses counts as a failure of its filter', async (t) => {
    const checked: DraftComment[] = [];
    const check = (changed: DraftComment): void => {
      checked.push(changed);
      if (changed.body === 'bad') throw new Error('not valid');
    };
    const seen: unknown[] = [];
    const runs = {
      a: () => ({ mentions: ['cid'] }),
      b: () => ({ body: 'bad' }),
      c: (payload: unknown) => void seen.push((payload as { comment: unknown }).comment),
    };
    const result = (onError: RegisteredFilter['onError']): Promise<FilterOutcome> =>
      create(chain('comment.create', runs, onError), check);
    t.strictSame(await result('open'), { outcome: 'pass', fields: { mentions: ['cid'] } });
    t.same(seen, [{ ...comment, mentions: ['cid'] }], 'later filters do not see it');
    t.same(
      checked,
      [
        { ...comment, mentions: ['cid'] },
        { ...comment, mentions: ['cid'], body: 'bad' },
      ],
      'what changes nothing is not checked',
    );
    t.match(await result('closed'), { outcome: 'reject', plugin: 'b' });
    t.match(await result('hold'), { outcome: 'hold', plugin: 'b', fields: { mentions: ['cid'] } });
    t.equal(seen.length, 1);
  });
}
