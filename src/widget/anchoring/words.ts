/** Scripts that are written without spaces: each character is a word. */
const UNSPACED = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]`;
const WORD = new RegExp(
  String.raw`${UNSPACED}|(?:(?!${UNSPACED})[\p{L}\p{N}\p{M}])+(?:[.,:'’/-](?!${UNSPACED})[\p{L}\p{N}]+)*|[\p{S}]`,
  'gu',
);
/** At most this many words of a text are compared. */
const MAX_WORDS = 60;

/** The words of a text in order, numbers and symbols included, without punctuation. */
export function wordsOf(text: string): string[] {
  return text.match(WORD) ?? [];
}

/** Whether a word has a digit: a number, or a name with one. */
export function isNumber(word: string): boolean {
  return /\p{N}/u.test(word);
}

/** How a text differs from a stored one, in words that are aligned (longest common subsequence). */
export interface Difference {
  /** Words of both. */
  readonly kept: readonly string[];
  /** Words that others stand for now. */
  readonly replaced: readonly string[];
  /** Words that are gone without any in their place. */
  readonly lost: readonly string[];
  /** Words that were not there, whether they stand for others or not. */
  readonly added: readonly string[];
}

/** Compares the first 60 words of two texts. */
export function compareWords(stored: readonly string[], found: readonly string[]): Difference {
  const one = stored.slice(0, MAX_WORDS);
  const other = found.slice(0, MAX_WORDS);
  const width = other.length + 1;
  const lengths = new Uint8Array((one.length + 1) * width);
  for (let row = one.length - 1; row >= 0; row -= 1) {
    for (let column = other.length - 1; column >= 0; column -= 1) {
      const below = lengths[(row + 1) * width + column] ?? 0;
      const right = lengths[row * width + column + 1] ?? 0;
      lengths[row * width + column] =
        one[row] === other[column] ? (lengths[(row + 1) * width + column + 1] ?? 0) + 1 : Math.max(below, right);
    }
  }
  const kept: string[] = [];
  const replaced: string[] = [];
  const lost: string[] = [];
  const added: string[] = [];
  let missing: string[] = [];
  let extra = 0;
  const endGap = (): void => {
    (extra > 0 ? replaced : lost).push(...missing);
    missing = [];
    extra = 0;
  };
  let row = 0;
  let column = 0;
  while (row < one.length || column < other.length) {
    const left = one[row];
    const right = other[column];
    if (left !== undefined && left === right) {
      endGap();
      kept.push(left);
      row += 1;
      column += 1;
    } else if (
      right === undefined ||
      (left !== undefined && (lengths[(row + 1) * width + column] ?? 0) >= (lengths[row * width + column + 1] ?? 0))
    ) {
      missing.push(left ?? '');
      row += 1;
    } else {
      added.push(right);
      extra += 1;
      column += 1;
    }
  }
  endGap();
  return { kept, replaced, lost, added };
}
