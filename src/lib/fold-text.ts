const NON_ASCII = /[\u0080-\uffff]/;
/** Accents, and the marks of Arabic and Japanese. Marks of other scripts, such as vowels in Thai, tell words apart. */
const ACCENTS = /\p{Script=Inherited}/gu;
/** What has no decomposition: special letters, those with a stroke, and typographic apostrophes and hyphens. */
const LIKE: Readonly<Record<string, string>> = {
  ...{ ı: 'i', ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ħ: 'h', ł: 'l', ŧ: 't', ς: 'σ' },
  ...{ '‘': "'", '’': "'", ʼ: "'", '‐': '-' },
};
const OTHERS = new RegExp(`[${Object.keys(LIKE).join('')}]`, 'g');

/**
 * A text for comparing what people type with names: without case, accents and differences of encoding, such as NFC and
 * NFD. `İ`, `I`, `ı` and `i` are one letter, and `ß` is `ss`. The result is not for display, and may be longer than the
 * text.
 */
export function foldText(text: string): string {
  if (!NON_ASCII.test(text)) return text.toLowerCase();
  return text
    .normalize('NFKD')
    .replace(ACCENTS, '')
    .toLowerCase()
    .replace(OTHERS, (letter) => LIKE[letter] ?? letter);
}
