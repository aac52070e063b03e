// How texts are compared, so that a word is found however it is disguised: docs/moderation.md, "moderation-rules".

/**
 * Letters of other scripts that look like a Latin letter in common fonts, from the confusables of Unicode (UTS 39) that have a
 * single lower-case Latin letter as prototype and occur in Cyrillic and Greek.
 */
const LOOKALIKES: Readonly<Record<string, string>> = {
  а: 'a', в: 'b', с: 'c', ԁ: 'd', е: 'e', ё: 'e', ғ: 'f', һ: 'h', і: 'i', ї: 'i', ј: 'j', к: 'k', ӏ: 'l', м: 'm', н: 'h', о: 'o', р: 'p', ԛ: 'q', г: 'r', ѕ: 's', т: 't', у: 'y', ѵ: 'v', ԝ: 'w', х: 'x',
  α: 'a', β: 'b', ε: 'e', η: 'n', ι: 'i', κ: 'k', ν: 'v', ο: 'o', ρ: 'p', τ: 't', υ: 'u', χ: 'x', γ: 'y', ω: 'w', σ: 'o', μ: 'u',
  ı: 'i', ɑ: 'a', ɡ: 'g', ɩ: 'i', ł: 'l', ø: 'o', đ: 'd', ħ: 'h', ŧ: 't', ß: 'ss', æ: 'ae', œ: 'oe',
};
/** Digits and signs that stand for letters inside of words. */
const LEET: Readonly<Record<string, string>> = { 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't', '@': 'a', $: 's', '!': 'i' };

/** Text without differences of width and composition, and without invisible characters: soft hyphens, zero-width and direction marks. */
export function clean(text: string): string {
  return text.normalize('NFKC').replaceAll(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, '');
}

/** Clean text in lower case and without accents, with letters that look like Latin ones replaced by these. */
export function fold(text: string): string {
  // Not all marks: those of Indic scripts are vowels.
  const bare = clean(text).toLowerCase().normalize('NFKD').replaceAll(/[\u0300-\u036f]/g, '');
  let folded = '';
  for (const character of bare) folded += LOOKALIKES[character] ?? character;
  return folded;
}

/** The words of a text, each folded and with signs for letters replaced, separated by spaces, with one at both ends. */
export function wordsOf(text: string): string {
  const tokens = fold(text).split(/[^\p{L}\p{N}@$!]+/u).map((token) => {
    const bare = token.replaceAll(/^[@$!]+|!+$/g, '');
    // 2026 and 10 stay numbers.
    return /\p{L}/u.test(bare) ? bare.replaceAll(/[013457@$!]/g, (sign) => LEET[sign] ?? sign) : bare;
  });
  return ` ${tokens.filter((token) => token !== '').join(' ')} `;
}

/** Whether a text is in a script that does not separate words by spaces. */
export function isUnspaced(text: string): boolean {
  return /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u.test(text);
}
