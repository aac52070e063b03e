import { BoundedMap } from '../../lib/bounded-map.ts';

/** Groups whose last attempts are remembered. */
const REMEMBERED = 20_000;
/** An answer that takes this long halves the weight of a group, in milliseconds. */
const HALF_WEIGHT_MS = 500;
/** The part that a new attempt has in the remembered time of a group. */
const SMOOTHING = 0.3;

/** What the last attempts of a group say: it answers; nothing yet; it fails. */
export type Standing = 'proven' | 'untried' | 'failing';

const PROVEN_FIRST: readonly Standing[] = ['proven', 'untried', 'failing'];
const OTHERS_FIRST: readonly Standing[] = ['untried', 'failing', 'proven'];
const OTHERS_FIRST_EVERY = 8;

interface Group {
  standing: Standing;
  /** How long attempts that succeeded took, smoothed, in milliseconds. */
  ms: number;
}

/**
 * Divides the places of a queue among its groups, so that groups which answer are served at once, however many others
 * hang.
 *
 * While more than one group is active, one that fails, or that was not tried yet, runs one job at a time; those that
 * fail take at most a quarter of the places together, and with those that were not tried at most half. Groups that
 * answer divide the rest, the slow ones with less weight. Bounded is what runs, not what is begun in a round. Keeps at
 * most 20 000 groups in mind.
 */
export class FairShares {
  readonly #places: number;
  readonly #groupPlaces: number;
  readonly #groups: BoundedMap<string, Group>;
  readonly #running = new Map<string, number>();
  #runningBy: Record<Standing, number> = { proven: 0, untried: 0, failing: 0 };
  /** Groups that run or had due jobs in the last round. */
  readonly #active = new Set<string>();
  #activeBy: Record<Standing, number> = { proven: 0, untried: 0, failing: 0 };
  /** Sum of the weights of the active groups that answer. */
  #weights = 0;
  #rounds = 0;
  /** The key of the group that had the last turn; '' before the first. */
  readonly #turns: Record<Standing, string> = { proven: '', untried: '', failing: '' };
  /** How many groups have waiting jobs, due or not. */
  #waiting = 0;

  /**
   * @param places how many jobs of the queue may run at a time
   * @param groupPlaces how many of one group
   * @param remembered how many groups are kept in mind
   */
  constructor(places: number, groupPlaces: number, remembered = REMEMBERED) {
    this.#groups = new BoundedMap(remembered);
    this.#places = places;
    this.#groupPlaces = groupPlaces;
  }

  /** How many jobs run, with those that are reserved. */
  get running(): number {
    return this.#runningBy.proven + this.#runningBy.untried + this.#runningBy.failing;
  }

  /** How many more jobs may run. */
  get free(): number {
    return this.#places - this.running;
  }

  /**
   * Groups in the order in which they are looked at: those that answer first, but last in every eighth round, so that
   * the others never wait without end; of each standing, from the one after the last that had its turn.
   *
   * @param groups sorted by their keys, so that the turn goes on where it was when others have come or gone
   */
  inTurn<T>(groups: readonly T[], keyOf: (group: T) => string): T[] {
    const by: Record<Standing, T[]> = { proven: [], untried: [], failing: [] };
    for (const group of groups) by[this.standingOf(keyOf(group))].push(group);
    const order = this.#rounds % OTHERS_FIRST_EVERY === 0 ? OTHERS_FIRST : PROVEN_FIRST;
    return order.flatMap((standing) => {
      const next = Math.max(
        0,
        by[standing].findIndex((group) => keyOf(group) > this.#turns[standing]),
      );
      return [...by[standing].slice(next), ...by[standing].slice(0, next)];
    });
  }

  /** Notes that a group had its turn among those of its standing. */
  tookTurn(key: string): void {
    this.#turns[this.standingOf(key)] = key;
  }

  standingOf(key: string): Standing {
    return this.#groups.get(key)?.standing ?? 'untried';
  }

  /** Begins a round over the groups with waiting jobs, of which there are so many. */
  beginRound(waiting: number): void {
    this.#rounds++;
    this.#waiting = waiting;
  }

  /** Ends a round that has found jobs due in these groups. Those that run count as well. */
  endRound(due: Iterable<string>): void {
    this.#active.clear();
    this.#activeBy = { proven: 0, untried: 0, failing: 0 };
    this.#runningBy = { proven: 0, untried: 0, failing: 0 };
    this.#weights = 0;
    for (const key of due) this.#activate(key);
    for (const [key, running] of this.#running) {
      this.#activate(key);
      this.#runningBy[this.standingOf(key)] += running;
    }
  }

  isActive(key: string): boolean {
    return this.#active.has(key);
  }

  /** How many more jobs of a group may begin now; 0 for none. */
  placesFor(key: string): number {
    const running = this.#running.get(key) ?? 0;
    return Math.max(0, Math.min(this.free, this.#limitOf(key, running) - running));
  }

  /** Counts a job that begins, or a place that is kept for one. */
  begin(key: string): void {
    this.#activate(key);
    this.#count(key, 1);
  }

  /** Ends what `begin` counted, without an attempt whose end says anything about the group. */
  release(key: string): void {
    this.#count(key, -1);
  }

  /** Ends what `begin` counted. `ms`: how long the attempt took. */
  end(key: string, succeeded: boolean, ms: number): void {
    this.#count(key, -1);
    const before = this.#groups.get(key);
    const smoothed = before?.standing === 'proven' ? before.ms + SMOOTHING * (ms - before.ms) : ms;
    this.#setGroup(key, succeeded ? { standing: 'proven', ms: smoothed } : { standing: 'failing', ms: 0 });
  }

  /** Says of a group that was not tried yet that it failed before this process began. */
  setFailing(key: string): void {
    this.#setGroup(key, { standing: 'failing', ms: 0 });
  }

  get #othersMax(): number {
    return Math.max(1, Math.floor(this.#places / 2));
  }

  get #failingMax(): number {
    return Math.max(1, Math.floor(this.#places / 4));
  }

  #limitOf(key: string, running: number): number {
    const isAlone = this.#waiting <= 1 && this.#active.size === Number(this.isActive(key));
    if (isAlone) return this.#groupPlaces;
    const standing = this.standingOf(key);
    if (standing === 'proven') return this.#shareOf(key);
    const { untried, failing } = this.#runningBy;
    const isFull = untried + failing >= this.#othersMax || (standing === 'failing' && failing >= this.#failingMax);
    return isFull ? running : 1;
  }

  #shareOf(key: string): number {
    const others = Math.min(this.#othersMax, this.#activeBy.untried + this.#activeBy.failing);
    const weight = this.#weightOf(key);
    const share = ((this.#places - others) * weight) / (this.#weights + (this.isActive(key) ? 0 : weight));
    return Math.min(this.#groupPlaces, Math.max(1, Math.floor(share)));
  }

  #weightOf(key: string): number {
    return 1 / (1 + (this.#groups.get(key)?.ms ?? 0) / HALF_WEIGHT_MS);
  }

  #setGroup(key: string, group: Group): void {
    const running = this.#running.get(key) ?? 0;
    const isActive = this.#active.has(key);
    this.#runningBy[this.standingOf(key)] -= running;
    if (isActive) this.#countActive(key, -1);
    this.#groups.set(key, group);
    this.#runningBy[group.standing] += running;
    if (isActive) this.#countActive(key, 1);
  }

  #activate(key: string): void {
    if (this.#active.has(key)) return;
    this.#active.add(key);
    this.#countActive(key, 1);
  }

  #countActive(key: string, change: 1 | -1): void {
    const standing = this.standingOf(key);
    this.#activeBy[standing] += change;
    if (standing === 'proven') this.#weights += change * this.#weightOf(key);
  }

  #count(key: string, change: 1 | -1): void {
    const running = (this.#running.get(key) ?? 0) + change;
    if (running <= 0) this.#running.delete(key);
    else this.#running.set(key, running);
    this.#runningBy[this.standingOf(key)] += change;
  }
}
