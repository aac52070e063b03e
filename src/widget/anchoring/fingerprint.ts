import type { Position } from '../../model/thread.ts';

/**
 * How much the text around an element says about it. `row`: it is a part of a row or card, and in another one it is
 * another element. `list`: it is a row itself, so its neighbours may be any. `near`: neither; what is around it may
 * change a little.
 */
export type Surroundings = 'row' | 'list' | 'near';

/**
 * What tells an element from others besides its text and the text around it (`quote`, `quotePrefix`, `quoteSuffix`).
 */
export interface Fingerprint {
  readonly tag: string;
  /** The tags of its children, at most eight. */
  readonly shape: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly classes: readonly string[];
  readonly surroundings: Surroundings;
  /** How many levels above it its row is; -1 if it has none. */
  readonly levels: number;
  /** Words of its row that at least half of the rows beside it have, such as those of buttons. */
  readonly labels: readonly string[];
  /** The headings above it, the nearest first. */
  readonly headings: readonly string[];
  /** The attribute that names its row in the list. */
  readonly key: readonly [string, string] | null;
  /** The host or frame around it; empty in the page itself. */
  readonly host: string;
  /** Selectors that lead from that of the position into shadow roots and frames. */
  readonly inner: readonly string[];
  /** How many elements had the same text and attributes. */
  readonly count: number;
  /** How many of these had the same text around them, and the place of this one among them. */
  readonly same: number;
  readonly nth: number;
}

/** The bound of the server, in characters. */
const MAX_LENGTH = 2_048;
const VERSION = 1;

/**
 * The fingerprint as a position stores it; undefined if it would be too long.
 *
 * @param page the page of the element, for those who are on another one (`pins/page.ts`); left out if it does not fit
 */
export function writeFingerprint(fingerprint: Fingerprint, page: string): string | undefined {
  const texts = [
    { v: VERSION, ...fingerprint, page },
    { v: VERSION, ...fingerprint },
  ].map((stored) => JSON.stringify(stored));
  return texts.find(({ length }) => length <= MAX_LENGTH);
}

/** The fingerprint of a position; null if it has none that this version can read. Anybody may have written it. */
export function readFingerprint({ fingerprint }: Position): Fingerprint | null {
  if (typeof fingerprint !== 'string' || fingerprint.length > MAX_LENGTH) return null;
  let read: unknown;
  try {
    read = JSON.parse(fingerprint);
  } catch {
    return null;
  }
  return isFingerprint(read) ? read : null;
}

function isFingerprint(read: unknown): read is Fingerprint {
  if (typeof read !== 'object' || read === null) return false;
  const {
    v,
    tag,
    shape,
    attributes,
    classes,
    surroundings,
    levels,
    labels,
    headings,
    key,
    host,
    inner,
    count,
    same,
    nth,
  } = read as Partial<Record<'v' | keyof Fingerprint, unknown>>;
  return (
    v === VERSION &&
    typeof tag === 'string' &&
    /^[a-z][\w.:-]{0,63}$/i.test(tag) &&
    typeof shape === 'string' &&
    typeof host === 'string' &&
    typeof attributes === 'object' &&
    attributes !== null &&
    !Array.isArray(attributes) &&
    areTexts(Object.values(attributes)) &&
    areTexts(classes) &&
    areTexts(labels) &&
    areTexts(headings) &&
    areTexts(inner) &&
    (surroundings === 'row' || surroundings === 'list' || surroundings === 'near') &&
    (key === null || (areTexts(key) && key.length === 2)) &&
    isCount(levels, -1) &&
    isCount(count, 1) &&
    isCount(same, 1) &&
    isCount(nth, 0)
  );
}

function areTexts(read: unknown): read is string[] {
  return Array.isArray(read) && read.length <= 64 && read.every((each) => typeof each === 'string');
}

function isCount(read: unknown, least: number): boolean {
  return typeof read === 'number' && Number.isInteger(read) && read >= least && read <= 1_000_000;
}
