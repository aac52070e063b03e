import { isSeen, shorten } from './text.ts';
import { compareWords, isNumber, wordsOf } from './words.ts';
import type { Surroundings } from './fingerprint.ts';

/** The text before and after an element, as in a TextQuoteSelector of the W3C. */
export interface Context {
  readonly before: string;
  readonly after: string;
}

/**
 * The length of each side, in characters: of a row that ends with the same words as the others, some of its own are
 * among them.
 */
const CONTEXT_LENGTH = 160;
/** At most this many pieces of text are read on each side. */
const MAX_PIECES = 100;

/** What a reading of a context uses. */
interface ContextOptions {
  /** The texts of nodes that were read already. */
  readonly pieces?: Map<Node, string>;
  /** The most characters of each side. */
  readonly length?: number;
}

/** The length to which contexts in the page are read: more than any that is stored. */
export const WIDE_CONTEXT = 2 * CONTEXT_LENGTH;

/**
 * The text around an element within another one around it, or within its root: at most 160 characters on each side,
 * with whole words.
 */
export function contextOf(
  element: Element,
  within: Node,
  { pieces = new Map(), length = CONTEXT_LENGTH }: ContextOptions = {},
): Context {
  const walker = element.ownerDocument.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  walker.currentNode = element;
  const before = collect(
    () => walker.previousNode(),
    pieces,
    length,
    (piece, text) => `${piece} ${text}`,
  );
  walker.currentNode = lastWithin(element);
  const after = collect(
    () => walker.nextNode(),
    pieces,
    length,
    (piece, text) => `${text} ${piece}`,
  );
  return {
    before:
      before.length <= length
        ? before
        : before
            .slice(-length)
            .replace(/^\S*\s/, '')
            .toWellFormed(),
    after:
      after.length <= length
        ? after
        : after
            .slice(0, length)
            .replace(/\s\S*$/, '')
            .toWellFormed(),
  };
}

/** The words of a context: those before backwards, so that the nearest of both sides are first. */
export interface ContextWords {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** The words of a context. */
export function contextWords({ before, after }: Context): ContextWords {
  return { before: wordsOf(before).toReversed(), after: wordsOf(after) };
}

/**
 * Whether the words next to an element are the stored ones, of which there may be more further away.
 *
 * @param numbersDiffer whether any number may be in the place of another
 */
export function isSameContext(found: ContextWords, stored: ContextWords, numbersDiffer = false): boolean {
  const begins = (words: readonly string[], beginning: readonly string[]): boolean =>
    beginning.every(
      (word, index) => words[index] === word || (numbersDiffer && isNumber(word) && isNumber(words[index] ?? '')),
    );
  return begins(found.before, stored.before) && begins(found.after, stored.after);
}

/** This part of the words around an element must be left for them to be the same. */
const KEPT = 0.5;
/** This many words on each side are the nearest. */
const NEAREST = 4;

/** What is known of the text around an element. */
interface Expected {
  readonly surroundings: Surroundings;
  /** Words that most rows have, and that do not tell one from another. */
  readonly labels: readonly string[];
  /** Whether the element itself tells so much that what is near it may be other text, with no other number. */
  readonly isTold?: boolean;
}

/** Whether the text around an element may be the stored one after a change: nothing says that this is another place. */
export function mayBeContext(
  found: ContextWords,
  stored: ContextWords,
  { surroundings, labels, isTold = false }: Expected,
): boolean {
  if (surroundings === 'list') return true;
  const total = stored.before.length + stored.after.length;
  if (total === 0) return true;
  const own = (words: readonly string[]): readonly string[] => words.filter((word) => !labels.includes(word));
  const hasOwn = surroundings === 'row' && own(stored.before).length + own(stored.after).length > 0;
  if (hasOwn && labels.length > 0)
    return mayBeContext(
      { before: own(found.before), after: own(found.after) },
      { before: own(stored.before), after: own(stored.after) },
      { surroundings, labels: [] },
    );
  const sides = [compareWords(stored.before, found.before), compareWords(stored.after, found.after)];
  const kept = sides.reduce((sum, side) => sum + side.kept.length, 0);
  if (surroundings === 'row') {
    return sides.every(({ replaced, lost }) => replaced.length === 0 && !lost.some(isNumber)) && kept >= total * KEPT;
  }
  const nothingLeft = found.before.length + found.after.length === 0;
  const near = new Set([...stored.before.slice(0, NEAREST), ...stored.after.slice(0, NEAREST)]);
  if (sides.some(({ replaced }) => replaced.some((word) => isNumber(word) || (!isTold && near.has(word)))))
    return false;
  return isTold || nothingLeft || kept >= total * KEPT;
}

/** The texts that `next` walks over, with single spaces, until there are enough of them. */
function collect(
  next: () => Node | null,
  known: Map<Node, string>,
  length: number,
  join: (piece: string, text: string) => string,
): string {
  let text = '';
  for (let count = 0; count < MAX_PIECES && text.length <= length; count += 1) {
    const node = next();
    if (node === null) break;
    const piece = known.get(node) ?? (isSeen(node) ? shorten((node.nodeValue ?? '').slice(0, 4_000), 1_000) : '');
    known.set(node, piece);
    if (piece !== '') text = join(piece, text).trim();
  }
  return text;
}

function lastWithin(element: Element): Node {
  let last: Node = element;
  while (last.lastChild !== null) last = last.lastChild;
  return last;
}
