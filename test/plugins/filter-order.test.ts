import t from 'tap';
import { createLogger } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { FilterFailure, type FilterOptions } from '../../src/plugins/api.ts';
import { FilterChain, type PluginFilter } from '../../src/plugins/filters/filter-chain.ts';
import { receivedError, sentError } from '../../src/plugins/thread/messages.ts';
import type { FilterOutcome } from '../../src/ports/filters.ts';
import { ManualClock } from '../doubles/manual-clock.ts';

type OnError = Required<FilterOptions>['onError'];

const environment = { id: 'env_1', slug: 'default' };
const actor = { kind: 'user', userId: 'ann', role: 'member' } as const;
const comment = { userId: 'ann', body: 'Hi', mentions: [], metadata: {}, attachmentIds: [] };

/** A filter of `comment.create` that notes its calls. */
function filterOf(
  plugin: string,
  options: Partial<FilterOptions>,
  decide: (body: string) => unknown,
): PluginFilter & { readonly calls: string[] } {
  const calls: string[] = [];
  return {
    plugin,
    name: 'comment.create',
    options: { priority: 100, timeoutMs: 100, onError: 'open', ...options },
    settings: { base: { enabled: true, priority: undefined, config: {} }, environments: new Map() },
    calls,
    run: async (payload) => {
      const { body } = (payload as { comment: typeof comment }).comment;
      calls.push(body);
      return Promise.resolve(decide(body));
    },
  };
}

function chainOf(...filters: PluginFilter[]) {
  const clock = new ManualClock(0);
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    level: 'info',
    name: 'web',
    destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const metrics = new Metrics();
  const chain = new FilterChain(filters, { clock, log, metrics });
  return {
    clock,
    lines,
    metrics,
    run: (slug = 'default') =>
      chain.run('comment.create', { ...environment, slug }, actor, { roomId: 'r', threadId: 'thr_1', comment }),
  };
}

t.test(
  'filters run by priority, then in the order of the configuration, each with the patches of those before',
  async (t) => {
    const adding = (plugin: string, priority?: number) =>
      filterOf(plugin, priority === undefined ? {} : { priority }, (body) => ({ body: `${body} ${plugin}` }));
    const { run } = chainOf(adding('low', -1), adding('one'), adding('two'), adding('high', 101), adding('three'));
    t.strictSame(await run(), { outcome: 'pass', fields: { body: 'Hi high one two three low' } });
  },
);

t.test('the first rejection or hold ends the chain; a hold keeps the patches of the filters before', async (t) => {
  const decisions: readonly (readonly [decision: object, outcome: FilterOutcome])[] = [
    [
      { outcome: 'reject', message: 'no', status: 400 },
      { outcome: 'reject', plugin: 'second', message: 'no', status: 400 },
    ],
    [
      { outcome: 'hold', reason: 'odd' },
      { outcome: 'hold', plugin: 'second', reason: 'odd', fields: { body: 'HI' } },
    ],
  ];
  for (const [decision, outcome] of decisions) {
    const last = filterOf('last', {}, () => undefined);
    const { run } = chainOf(
      filterOf('first', {}, (body) => ({ body: body.toUpperCase() })),
      filterOf('second', {}, () => decision),
      last,
    );
    t.strictSame(await run(), outcome);
    t.strictSame(last.calls, []);
  }
});

const outcomes: Readonly<Record<OnError, FilterOutcome>> = {
  open: { outcome: 'pass', fields: { body: 'Hi!' } },
  closed: {
    outcome: 'reject',
    plugin: 'failing',
    message: 'The content could not be checked. Try again later',
    status: 403,
  },
  hold: { outcome: 'hold', plugin: 'failing', reason: 'the filter failed', fields: {} },
};

for (const onError of ['open', 'closed', 'hold'] as const) {
  t.test(
    `after five failures in a row a filter is left out for 30 s, and its onError (${onError}) applies`,
    async (t) => {
      let fails = true;
      const failing = filterOf('failing', { onError }, () => {
        if (fails) throw new Error('broken');
        return undefined;
      });
      const { clock, lines, metrics, run } = chainOf(
        failing,
        filterOf('next', {}, (body) => ({ body: `${body}!` })),
      );
      const report = (): { skipped: number | undefined; errors: number; calls: number } => {
        const { counters, gauges, histograms } = metrics.takeReport();
        const of = <V>(values: Readonly<Record<string, V>>, name: string): V | undefined =>
          Object.entries(values).find(([series]) => series.startsWith(name) && series.includes('failing'))?.[1];
        return {
          skipped: of(gauges, 'plugin_filter_skipped'),
          errors: of(counters, 'plugin_hook_errors_total') ?? 0,
          calls: of(histograms, 'plugin_hook_duration_seconds')?.counts.reduce((sum, count) => sum + count, 0) ?? 0,
        };
      };
      const calls = async (count: number): Promise<number> => {
        const before = failing.calls.length;
        for (let call = 0; call < count; call++) t.strictSame(await run(), outcomes[onError]);
        return failing.calls.length - before;
      };
      t.equal(await calls(4), 4);
      fails = false;
      await run();
      fails = true;
      t.equal(await calls(5), 5, 'a success begins the count anew');
      t.strictSame(report(), { skipped: 1, errors: 9, calls: 10 });
      t.equal(await calls(3), 0, 'it is not called');
      t.strictSame(report(), { skipped: 1, errors: 0, calls: 0 }, 'what is left out is no failure');
      clock.advance(29_999);
      t.equal(await calls(1), 0);
      clock.advance(1);
      t.equal(await calls(2), 1, 'one more failure is enough now');
      clock.advance(30_000);
      fails = false;
      t.strictSame(await run(), outcomes.open, 'it is called again, and succeeds');
      t.equal(report().skipped, 0);
      fails = true;
      t.equal(await calls(4), 4, 'the count begins anew');
      t.equal(lines.filter(({ msg }) => /is not called in this environment for 30 s/.test(String(msg))).length, 2);
    },
  );
}

for (const [where, thrown] of [
  ['in the worker', (error: Error) => error],
  ['in a thread', (error: Error) => receivedError(structuredClone(sentError(error)))],
] as const) {
  t.test(`a FilterFailure ${where} says what it means, also while the filter is left out`, async (t) => {
    const failing = filterOf('failing', { onError: 'open' }, () => {
      throw thrown(new FilterFailure('the service did not answer', 'hold', { cause: new Error('it answered 500') }));
    });
    const { lines, run } = chainOf(failing);
    for (let call = 0; call < 7; call++)
      t.strictSame(await run(), {
        outcome: 'hold',
        plugin: 'failing',
        reason: 'the service did not answer',
        fields: {},
      });
    t.equal(failing.calls.length, 5);
    t.match(lines[0], { reason: 'the service did not answer', cause: 'it answered 500', onError: 'hold' });
  });
}

t.test('failures of a filter in one environment do not leave it out in another', async (t) => {
  const failing = filterOf('failing', {}, () => {
    throw new Error('broken');
  });
  const { metrics, run } = chainOf(failing);
  for (let call = 0; call < 6; call++) await run('staging');
  t.equal(failing.calls.length, 5);
  await run('default');
  t.equal(failing.calls.length, 6);
  t.match(
    Object.entries(metrics.takeReport().gauges).filter(([series]) => series.startsWith('plugin_filter_skipped')),
    [[/failing/, 1]],
  );
});
