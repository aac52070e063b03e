import t from 'tap';
import { FilterChain } from '../../src/plugins/filters/filter-chain.ts';
import { createLogger } from '../../src/observability/log.ts';
import { anyFilters, filtersConformance, type RegisteredFilter } from '../conformance/filters.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';

/** A chain of filters that run in this process. */
function chainOf(registered: readonly RegisteredFilter[]): FilterChain {
  const settings = (enabled: boolean) => ({ enabled, priority: undefined, config: {} });
  const filters = registered.map(({ plugin, name, onError, only, run }) => ({
    plugin,
    name,
    options: { priority: 100, timeoutMs: 2_000, onError },
    settings: {
      base: settings(only === undefined),
      environments: new Map(only === undefined ? [] : [[only, settings(true)]]),
    },
    run: async (payload: unknown) => run(structuredClone(payload)),
  }));
  return new FilterChain(filters, { clock: new ManualClock(0), log: createLogger({ level: 'silent', name: 'test' }) });
}

t.test('the filters of plugins keep the contract of Filters', (t) => filtersConformance(t, chainOf));

t.test('the filters that hold a text keep the contract of Filters', async (t) => {
  await anyFilters(t, holdingFilters);
  const comment = { userId: 'ann', body: HELD_TEXT, mentions: [], metadata: {}, attachmentIds: [] };
  const actor = { kind: 'backend', userId: null, role: null } as const;
  t.match(
    await holdingFilters.run('comment.create', { id: 'env_1', slug: 'default' }, actor, {
      roomId: 'r',
      threadId: 'th_1',
      comment,
    }),
    { outcome: 'hold', fields: {} },
  );
});
