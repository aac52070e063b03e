// How texts are compared, so that a word is found however it is disguised: docs/moderation.md, "moderation-rules".

/**
 * Letters of other scripts that look like a Latin letter in common fonts, from the confusables of Unicode (UTS 39) that
 * have a single lower-case Latin letter as prototype and occur in Cyrillic and Greek.
 */
const LOOKALIKES: Readonly<Record<string, string>> = {
  а: 'a',
  в: 'b',
  с: 'c',
  ԁ: 'd',
  е: 'e',
  ё: 'e',
  ғ: 'f',
  һ: 'h',
  і: 'i',
  ї: 'i',
  ј: 'j',
  к: 'k',
  ӏ: 'l',
  м: 'm',
  н: 'h',
  о: 'o',
  р: 'p',
  ԛ: 'q',
  г: 'r',
  ѕ: 's',
  т: 't',
  у: 'y',
  ѵ: 'v',
  ԝ: 'w',
  х: 'x',
  α: 'a',
  β: 'b',
  ε: 'e',
  η: 'n',
  ι: 'i',
  κ: 'k',
  ν: 'v',
  ο: 'o',
  ρ: 'p',
  τ: 't',
  υ: 'u',
  χ: 'x',
  γ: 'y',
  ω: 'w',
  σ: 'o',
  μ: 'u',
  ı: 'i',
  ɑ: 'a',
  ɡ: 'g',
  ɩ: 'i',
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ħ: 'h',
  ŧ: 't',
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
};
/** Digits and signs that stand for letters inside of words. */
const LEET: Readonly<Record<string, string>> = {
  0: 'o',
  1: 'i',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};

/** Ligatures of whole phrases, of 18 and 8 letters: a text of them would grow by as much. They count as spaces. */
const PHRASES = /[\ufdfa\ufdfb]/g;
/**
 * The marks of one letter after the first 30, as in the stream-safe text of Unicode (UAX 15): to sort thousands takes
 * quadratic time.
 */
const STACKED_MARKS = /(\p{M}{30})\p{M}+/gu;

/**
 * Text without differences of width and composition, and without invisible characters: soft hyphens, zero-width and
 * direction marks.
 */
function clean(text: string): string {
  const bounded = text.replaceAll(PHRASES, ' ').replaceAll(STACKED_MARKS, '$1');
  return bounded.normalize('NFKC').replaceAll(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, '');
}

/** Clean text in lower case and without accents, with letters that look like Latin ones replaced by these. */
function fold(text: string): string {
  // Not all marks: those of Indic scripts are vowels.
  const bare = text
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036f]/g, '');
  let folded = '';
  for (const character of bare) folded += LOOKALIKES[character] ?? character;
  return folded;
}

/** The words of a folded text, with signs for letters replaced, separated by spaces, with one at both ends. */
function words(folded: string): string {
  const tokens = folded.split(/[^\p{L}\p{N}@$!]+/u).map((token) => {
    const bare = withoutSignsAround(token);
    // 2026 and 10 stay numbers.
    return /\p{L}/u.test(bare) ? bare.replaceAll(/[013457@$!]/g, (sign) => LEET[sign] ?? sign) : bare;
  });
  return ` ${tokens.filter((token) => token !== '').join(' ')} `;
}

/**
 * A token without the signs @, $ and ! before it, and without ! after it. Not a regular expression: `!+$` takes
 * quadratic time.
 */
function withoutSignsAround(token: string): string {
  let [start, end] = [0, token.length];
  while (start < end && '@$!'.includes(token.charAt(start))) start++;
  while (end > start && token.charAt(end - 1) === '!') end--;
  return token.slice(start, end);
}

/** A text in the forms in which rules compare it. Each is made once, in time linear in the length of the text. */
export class ComparedText {
  readonly #text: string;
  #clean: string | undefined;
  #folded: string | undefined;
  #words: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Without differences of width and composition, and without invisible characters. At most 6 times as long as the
   * text.
   */
  get clean(): string {
    return (this.#clean ??= clean(this.#text));
  }

  /** As `clean`, in lower case and without accents, with letters that look like Latin ones replaced by these. */
  get folded(): string {
    return (this.#folded ??= fold(this.clean));
  }

  /** The words, each folded and with signs for letters replaced, separated by spaces, with one at both ends. */
  get words(): string {
    return (this.#words ??= words(this.folded));
  }
}

/** Whether a text is in a script that does not separate words by spaces. */
export function isUnspaced(text: string): boolean {
  return /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u.test(
    text,
  );
}

/** A function that keeps its last result, for the rules that ask for the same text one after the other. */
export function lastResult<T>(find: (text: ComparedText) => T): (text: ComparedText) => T {
  let last: { readonly text: ComparedText; readonly result: T } | null = null;
  return (text) => {
    if (last?.text !== text) last = { text, result: find(text) };
    return last.result;
  };
}
