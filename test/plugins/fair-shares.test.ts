import t from 'tap';
import { FairShares } from '../../src/plugins/queues/fair-shares.ts';

/** Repeatable numbers from 0 to 1. */
function randomOf(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

interface Kind {
  readonly groups: number;
  /** How long an attempt takes, in milliseconds; Infinity for one that ends by the deadline. */
  readonly ms: number;
  /** How often each of the groups gets a job, in milliseconds. */
  readonly everyMs: number;
}

interface Simulation {
  readonly places: number;
  readonly groupPlaces: number;
  readonly deadlineMs: number;
  readonly forMs: number;
  /** The time between two rounds, in milliseconds. */
  readonly stepMs: number;
  readonly kinds: Readonly<Record<string, Kind>>;
}

interface Outcome {
  /**
   * By kind: how long jobs waited until they had ended, in order, of those that were added in the second half of the
   * time.
   */
  readonly waits: Readonly<Record<string, number[]>>;
  readonly mostRunning: Readonly<Record<string, number>>;
}

/** Runs a queue in steps, with the shares of `FairShares`, and asserts nothing itself. */
function simulate({ places, groupPlaces, deadlineMs, forMs, stepMs, kinds }: Simulation, seed: number): Outcome {
  const random = randomOf(seed);
  const shares = new FairShares(places, groupPlaces);
  const groups = Object.entries(kinds)
    .flatMap(([kind, options]) =>
      Array.from({ length: options.groups }, (_, n) => ({
        key: `${random().toFixed(12)} ${n}`,
        kind,
        ...options,
        nextAt: random() * options.everyMs,
        jobs: [] as number[],
      })),
    )
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  const waits: Record<string, number[]> = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []]));
  const mostRunning: Record<string, number> = {};
  const runningOf = new Map<string, number>();
  let ends: { at: number; begunAt: number; addedAt: number; group: (typeof groups)[number] }[] = [];
  for (let now = 0; now < forMs; now += stepMs) {
    for (const group of groups) {
      for (; group.nextAt <= now; group.nextAt += group.everyMs) group.jobs.push(group.nextAt);
    }
    for (const { at, begunAt, addedAt, group } of ends) {
      if (at > now) continue;
      shares.end(group.key, group.ms < deadlineMs, at - begunAt);
      runningOf.set(group.kind, (runningOf.get(group.kind) ?? 0) - 1);
      if (addedAt > forMs / 2) waits[group.kind]?.push(at - addedAt);
    }
    ends = ends.filter(({ at }) => at > now);
    const waiting = groups.filter(({ jobs }) => jobs.length > 0);
    shares.beginRound(waiting.length);
    for (const group of shares.inTurn(waiting, ({ key }) => key)) {
      if (shares.free <= 0) break;
      for (let left = shares.placesFor(group.key); left > 0 && group.jobs.length > 0; left--) {
        shares.tookTurn(group.key);
        shares.begin(group.key);
        const running = (runningOf.get(group.kind) ?? 0) + 1;
        runningOf.set(group.kind, running);
        mostRunning[group.kind] = Math.max(mostRunning[group.kind] ?? 0, running);
        ends.push({
          at: now + Math.min(group.ms, deadlineMs) * (0.8 + 0.2 * random()),
          begunAt: now,
          addedAt: group.jobs.shift() ?? now,
          group,
        });
      }
    }
    shares.endRound(waiting.map(({ key }) => key));
  }
  for (const times of Object.values(waits)) times.sort((a, b) => a - b);
  return { waits, mostRunning };
}

const p95 = (sorted: readonly number[] = []): number => sorted[Math.floor(sorted.length * 0.95)] ?? Infinity;

t.test('groups that answer are served within a second, however many others hang', (t) => {
  for (let seed = 0; seed < 200; seed++) {
    const kinds = { dead: { groups: 20, ms: Infinity, everyMs: 400 }, healthy: { groups: 2, ms: 30, everyMs: 100 } };
    const { waits, mostRunning } = simulate(
      { places: 8, groupPlaces: 4, deadlineMs: 1_000, forMs: 24_000, stepMs: 80, kinds },
      seed,
    );
    if (p95(waits['healthy']) > 300) t.fail(`seed ${seed}: ${p95(waits['healthy'])} ms`);
    if ((mostRunning['dead'] ?? 0) > 4) t.fail(`seed ${seed}: ${mostRunning['dead']} of those that hang ran at once`);
  }
  const kinds = {
    dead: { groups: 1_000, ms: Infinity, everyMs: 2_000 },
    healthy: { groups: 10, ms: 50, everyMs: 250 },
  };
  const { waits, mostRunning } = simulate(
    { places: 256, groupPlaces: 16, deadlineMs: 10_000, forMs: 300_000, stepMs: 200, kinds },
    1,
  );
  t.ok(p95(waits['healthy']) < 1_000, `1 000 beside 10: ${p95(waits['healthy'])} ms`);
  t.ok((mostRunning['dead'] ?? 0) <= 128);
  t.end();
});

t.test('groups that answer slowly leave places for those that answer fast', (t) => {
  for (let seed = 0; seed < 10; seed++) {
    const kinds = { slow: { groups: 40, ms: 8_000, everyMs: 300 }, fast: { groups: 4, ms: 20, everyMs: 50 } };
    const { waits } = simulate(
      { places: 64, groupPlaces: 16, deadlineMs: 10_000, forMs: 30_000, stepMs: 20, kinds },
      seed,
    );
    if (p95(waits['fast']) > 1_000) t.fail(`seed ${seed}: ${p95(waits['fast'])} ms`);
  }
  t.pass();
  t.end();
});

t.test('groups that were not tried yet get their turn beside more groups that answer than there are places', (t) => {
  for (let seed = 0; seed < 20; seed++) {
    const kinds = {
      busy: { groups: 12, ms: 50, everyMs: 10 },
      late: { groups: 3, ms: 50, everyMs: 2_000 },
      dead: { groups: 3, ms: Infinity, everyMs: 400 },
    };
    const { waits } = simulate(
      { places: 8, groupPlaces: 4, deadlineMs: 1_000, forMs: 24_000, stepMs: 20, kinds },
      seed,
    );
    if (p95(waits['late']) > 8_000) t.fail(`seed ${seed}: ${p95(waits['late'])} ms`);
  }
  t.pass();
  t.end();
});

t.test(
  'a group alone may take all the places of a group, and one that failed gets them back with its first success',
  (t) => {
    const shares = new FairShares(32, 16);
    shares.beginRound(1);
    t.equal(shares.placesFor('a'), 16);
    shares.beginRound(2);
    t.equal(shares.placesFor('a'), 1, 'not tried yet');
    shares.begin('a');
    t.equal(shares.placesFor('a'), 0);
    shares.end('a', false, 10_000);
    t.equal(shares.placesFor('a'), 1, 'failing');
    shares.begin('a');
    shares.end('a', true, 10);
    shares.endRound(['a', 'b']);
    t.equal(shares.placesFor('a'), 16, 'of the 31 that one other group leaves');
    shares.setFailing('b');
    t.equal(shares.standingOf('b'), 'failing');
    t.equal(shares.free, 32);
    t.end();
  },
);
