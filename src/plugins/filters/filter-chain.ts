import { asError, firstLine } from '../../lib/thrown.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import type { Counter, Histogram, Metrics } from '../../observability/metrics.ts';
import type { DraftComment, DraftPatch, FilterActor, WriteFilter, WriteFilterTypes } from '../../model/filter.ts';
import type { FilterOutcome, Filters } from '../../ports/filters.ts';
import type { FilterFailure, FilterName, FilterOptions, FilterTypes, PluginEnvironment } from '../api.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { type FilterDecision, isHoldable, readResult } from './filter-result.ts';
import { isOnError } from '../hooks.ts';
import { type PluginSettings, settingsIn } from '../loading/settings.ts';

/** The context of a call of a filter, besides its payload. */
export interface FilterCall {
  readonly environment: PluginEnvironment;
  readonly actor: FilterActor;
  readonly config: unknown;
}

/** A filter of a plugin, in this process or in a thread. */
export interface PluginFilter {
  readonly plugin: string;
  readonly name: FilterName;
  readonly options: Required<FilterOptions>;
  readonly settings: PluginSettings;
  /** Runs it with a copy of the payload. Rejects if it throws, or passes its deadline. */
  run(payload: unknown, call: FilterCall): Promise<unknown>;
}

type OnError = FilterFailure['onError'];

interface Link {
  readonly filter: PluginFilter;
  readonly priority: number;
  readonly config: unknown;
  readonly state: FilterState;
}

/** The counts of one filter in one environment. */
interface FilterState extends FilterMetrics {
  readonly breaker: CircuitBreaker;
  /** The effect of the last failure. */
  failure: FilterDecision;
}

/** The metrics of one filter. */
interface FilterMetrics {
  readonly duration: Histogram | undefined;
  readonly errors: Counter | undefined;
}

const BACKEND: FilterActor = { kind: 'backend', userId: null, role: null };
/** Why content is held, unless the failure says it. */
const FAILED = 'the filter failed';
const NOT_CHECKED = 'The content could not be checked. Try again later';

/** Runs the filters of all plugins in the order of their priority, then of the configuration. */
export class FilterChain implements Filters {
  readonly #filters: readonly PluginFilter[];
  readonly #metrics: ReadonlyMap<PluginFilter, FilterMetrics>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #log: Logger;
  /** By name of the filter, then by slug of the environment. */
  readonly #chains = new Map<FilterName, Map<string, readonly Link[]>>();

  /** @param filters in the order of the configuration */
  constructor(
    filters: readonly PluginFilter[],
    { clock, log, metrics }: { clock: Pick<Clock, 'monotonic'>; log: Logger; metrics?: Metrics | undefined },
  ) {
    this.#filters = filters;
    this.#clock = clock;
    this.#log = log;
    this.#metrics = new Map(
      filters.map((filter) => {
        const labels = labelsOf(filter);
        return [
          filter,
          {
            duration: metrics?.histogram('plugin_hook_duration_seconds', labels),
            errors: metrics?.counter('plugin_hook_errors_total', labels),
          },
        ];
      }),
    );
    metrics?.gauge('plugin_filter_skipped', () => filters.map((filter) => [labelsOf(filter), this.#skippedIn(filter)]));
  }

  has(name: FilterName, { slug }: PluginEnvironment): boolean {
    return this.#chain(name, slug).length > 0;
  }

  run<N extends WriteFilter>(
    name: N,
    environment: PluginEnvironment,
    actor: FilterActor,
    payload: WriteFilterTypes[N]['payload'],
    check?: (comment: DraftComment) => void,
  ): Promise<FilterOutcome> {
    return this.#run(name, environment, actor, payload, check);
  }

  /** Runs the filters of a delivery and returns whether none of them rejects. Never rejects. */
  async passes<N extends 'notification.deliver' | 'webhook.deliver'>(
    environment: PluginEnvironment,
    name: N,
    payload: FilterTypes[N]['payload'],
  ): Promise<boolean> {
    return (await this.rejectedBy(environment, name, payload)) === null;
  }

  /**
   * Runs the filters of a delivery and returns the plugin whose filter rejects it; null if none does. Never rejects.
   */
  async rejectedBy<N extends 'notification.deliver' | 'webhook.deliver'>(
    environment: PluginEnvironment,
    name: N,
    payload: FilterTypes[N]['payload'],
  ): Promise<string | null> {
    if (!this.has(name, environment)) return null;
    const decided = await this.#run(name, environment, BACKEND, payload);
    return decided.outcome === 'pass' ? null : decided.plugin;
  }

  async #run(
    name: FilterName,
    { id, slug }: PluginEnvironment,
    actor: FilterActor,
    payload: object,
    check: (comment: DraftComment) => void = () => {},
  ): Promise<FilterOutcome> {
    const environment = { id, slug };
    let current = payload;
    let fields: DraftPatch = {};
    for (const { filter, config, state } of this.#chain(name, slug)) {
      const decided = await this.#decide(filter, state, current, { environment, actor, config }, check);
      if (decided.kind === 'reject')
        return { outcome: 'reject', plugin: filter.plugin, message: decided.message, status: decided.status };
      if (decided.kind === 'hold') return { outcome: 'hold', plugin: filter.plugin, reason: decided.reason, fields };
      if (Object.keys(decided.fields).length === 0) continue;
      fields = { ...fields, ...decided.fields };
      current = patched(current, decided.fields);
    }
    return { outcome: 'pass', fields };
  }

  /** The decision of one filter, or what its `onError` says if it fails. */
  async #decide(
    filter: PluginFilter,
    state: FilterState,
    payload: object,
    call: FilterCall,
    check: (comment: DraftComment) => void,
  ): Promise<FilterDecision> {
    const { breaker, duration, errors } = state;
    if (breaker.isOpen) return state.failure;
    const startedAt = performance.now();
    try {
      const decision = readResult(filter.name, await filter.run(payload, call));
      if (decision.kind === 'pass' && 'comment' in payload && Object.keys(decision.fields).length > 0)
        check({ ...(payload.comment as DraftComment), ...decision.fields });
      breaker.succeeded();
      return decision;
    } catch (thrown) {
      const error = asError(thrown);
      if (errors !== undefined) errors.value += 1;
      const about = { ...labelsOf(filter), environment: call.environment.slug };
      const { onError, reason } = failureOf(error, filter);
      const cause = error.cause === undefined ? undefined : firstLine(error.cause);
      this.#log.warn({ ...about, reason: firstLine(error), cause, onError }, 'a filter of a plugin failed');
      if (breaker.failed())
        this.#log.error(
          about,
          'a filter of a plugin has failed 5 times in a row: it is not called in this environment for 30 s, and its onError applies',
        );
      state.failure = onFailure(filter, onError, reason);
      return state.failure;
    } finally {
      duration?.observe((performance.now() - startedAt) / 1_000);
    }
  }

  /** In how many environments the filter is not called at the moment. */
  #skippedIn(filter: PluginFilter): number {
    return [...this.#chains.values()]
      .flatMap((bySlug) => [...bySlug.values()].flat())
      .filter((link) => link.filter === filter && link.state.breaker.isOpen).length;
  }

  #chain(name: FilterName, slug: string): readonly Link[] {
    let bySlug = this.#chains.get(name);
    if (bySlug === undefined) this.#chains.set(name, (bySlug = new Map<string, readonly Link[]>()));
    let chain = bySlug.get(slug);
    if (chain === undefined) bySlug.set(slug, (chain = this.#link(name, slug)));
    return chain;
  }

  #link(name: FilterName, slug: string): readonly Link[] {
    const links = this.#filters.flatMap((filter): Link[] => {
      const { enabled, priority, config } = settingsIn(filter.settings, slug);
      const metrics = this.#metrics.get(filter);
      if (filter.name !== name || !enabled || metrics === undefined) return [];
      const state = {
        ...metrics,
        breaker: new CircuitBreaker(this.#clock),
        failure: onFailure(filter, filter.options.onError, FAILED),
      };
      return [{ filter, priority: priority ?? filter.options.priority, config, state }];
    });
    // The sort is stable, so equal ones stay in the order of the configuration.
    return links.toSorted((a, b) => b.priority - a.priority);
  }
}

function labelsOf({ plugin, name }: PluginFilter): { plugin: string; hook: string } {
  return { plugin, hook: name };
}

/**
 * The effect of a failure, and the reason that moderators see: its own if it is a `FilterFailure`, also one from a
 * thread.
 */
function failureOf(error: Error, { options }: PluginFilter): { onError: OnError; reason: string } {
  const { name, message } = error;
  const { onError } = error as Partial<FilterFailure>;
  return name === 'FilterFailure' && isOnError(onError)
    ? { onError, reason: message }
    : { onError: options.onError, reason: FAILED };
}

function onFailure({ name }: PluginFilter, onError: OnError, reason: string): FilterDecision {
  if (onError === 'open') return { kind: 'pass', fields: {} };
  return onError === 'hold' && isHoldable(name)
    ? { kind: 'hold', reason }
    : { kind: 'reject', message: NOT_CHECKED, status: 403 };
}

/** A payload whose comment has the changed fields. Metadata of a new thread are those of its first comment. */
function patched(payload: object, fields: DraftPatch): object {
  const { comment, ...rest } = payload as { comment: DraftComment };
  return {
    ...rest,
    ...('metadata' in rest && fields.metadata !== undefined ? { metadata: fields.metadata } : {}),
    comment: { ...comment, ...fields },
  };
}
