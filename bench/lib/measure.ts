import { names, type TargetName } from './target.ts';

/** One measured quantity: the results of every run of every target. */
export interface Row {
  readonly label: string;
  readonly unit: string;
  readonly digits: number;
  readonly runs: Map<TargetName, number[]>;
}

/** A goal of a case. */
export interface Goal {
  readonly label: string;
  readonly measured: number;
  readonly bound: number;
  readonly kind: 'at least' | 'under';
  readonly unit: string;
  readonly passed: boolean;
}

/** The measurements of one case, and its goals. */
export interface CaseResult {
  readonly name: string;
  readonly title: string;
  readonly rows: readonly Row[];
  readonly goals: readonly Goal[];
}

/** A case, and the share of the machine in percent that other processes used during it. */
export interface Observed extends CaseResult {
  readonly neighboursPercent: number;
}

/** Creates a row without runs; its values are shown with this many decimals. */
export function newRow(label: string, unit: string, digits: number): Row {
  return { label, unit, digits, runs: new Map() };
}

/** Adds the result of one run. */
export function record(row: Row, target: TargetName, value: number): void {
  row.runs.set(target, [...(row.runs.get(target) ?? []), value]);
}

/** The median of the target's runs; NaN if there are none. */
export function medianOf(row: Row, target: TargetName): number {
  return median(row.runs.get(target) ?? []);
}

/** The middle value, or the mean of the two in the middle; NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The goal that Collab's median is at least this ratio of a peer's. */
export function ratioGoal(row: Row, peer: TargetName, bound: number): Goal {
  const measured = medianOf(row, 'collab') / medianOf(row, peer);
  return {
    label: `${row.label}: collab / ${peer}`,
    measured,
    bound,
    kind: 'at least',
    unit: 'x',
    passed: measured >= bound,
  };
}

/** The goal that Collab uses at most one part in this many of the time that a peer uses, by their medians. */
export function lessTimeGoal(row: Row, peer: TargetName, bound: number): Goal {
  const measured = medianOf(row, peer) / medianOf(row, 'collab');
  return {
    label: `${row.label}: ${peer} / collab`,
    measured,
    bound,
    kind: 'at least',
    unit: 'x',
    passed: measured >= bound,
  };
}

/**
 * The goal that the rate of a target is at least this ratio of another's: the median of the ratios within each round.
 */
export function pairedGoal(row: Row, target: TargetName, other: TargetName, bound: number): Goal {
  const others = row.runs.get(other) ?? [];
  const measured = median((row.runs.get(target) ?? []).map((value, round) => value / (others[round] ?? NaN)));
  return {
    label: `${row.label}: ${target} / ${other}`,
    measured,
    bound,
    kind: 'at least',
    unit: 'x',
    passed: measured >= bound,
  };
}

/** The ratio that a build must reach compared with the earlier one; the rest is noise of such runs. */
const leastOfBefore = 0.97;

/**
 * Compares a build with the one before it: the ratio of the rates, or the inverse ratio of times and bytes. It is the
 * median over the rounds of the ratio within a round, because runs next to each other meet a machine of about the same
 * speed.
 */
export function beforeGoal(row: Row, target: TargetName = 'collab'): Goal {
  const before = row.runs.get('collab before') ?? [];
  const ratio = median((row.runs.get(target) ?? []).map((value, round) => value / (before[round] ?? NaN)));
  const measured = row.unit === '1/s' ? ratio : 1 / ratio;
  return {
    label: `${row.label}: now / before`,
    measured,
    bound: leastOfBefore,
    kind: 'at least',
    unit: 'x',
    passed: measured >= leastOfBefore,
  };
}

/** The goal that Collab's median stays below this value. */
export function ceilingGoal(row: Row, bound: number, target: TargetName = 'collab'): Goal {
  const measured = medianOf(row, target);
  return { label: row.label, measured, bound, kind: 'under', unit: row.unit, passed: measured < bound };
}

/** The targets that a row has runs of, in the order of the columns. */
export function columnsOf(rows: readonly Row[]): TargetName[] {
  return names.filter((name) => rows.some((row) => row.runs.has(name)));
}
