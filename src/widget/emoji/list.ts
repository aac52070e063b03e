/** An emoji of Unicode. */
export interface Emoji {
  readonly emoji: string;
  /** Whether it can have one of the skin tones. */
  readonly hasTones: boolean;
  /** Its shortcodes without colons, the usual one first. */
  readonly codes: readonly string[];
  /** Words in English by which it is found, beside those of its shortcodes. */
  readonly words: readonly string[];
}

/** The skin tones: none, and the five modifiers from light to dark. */
export const TONES = ['', '\u{1F3FB}', '\u{1F3FC}', '\u{1F3FD}', '\u{1F3FE}', '\u{1F3FF}'] as const;

/** The groups of a list of emoji as tools/emoji-list.mjs writes it. */
export function parseEmojis(text: string): Emoji[][] {
  return text
    .trimEnd()
    .split('\n#\n')
    .map((group) => group.split('\n').map(parseLine));
}

function parseLine(line: string): Emoji {
  const [mark = '', codes = '', words = ''] = line.split('\t');
  const hasTones = mark.endsWith('+');
  return { emoji: hasTones ? mark.slice(0, -1) : mark, hasTones, codes: codes.split(' '), words: words.split(' ') };
}

/**
 * The emoji that a text means: those with a shortcode that begins with it first, then those with a word of a shortcode
 * or another word that does. Of several words each has to fit.
 *
 * @param limit at most so many
 */
export function findEmojis(emojis: readonly Emoji[], text: string, limit: number): Emoji[] {
  const wanted = text
    .toLowerCase()
    .split(/[\s:]+/)
    .filter((word) => word !== '');
  const code = wanted.join('_');
  const byCode = emojis.filter(({ codes }) => codes.some((each) => each.startsWith(code)));
  const isExact = ({ codes }: Emoji): boolean => codes.includes(code);
  const found = new Set([...byCode.filter(isExact), ...byCode]);
  for (const each of emojis) {
    const words = [...each.codes.flatMap((name) => name.split('_')), ...each.words];
    if (wanted.every((start) => words.some((word) => word.startsWith(start)))) found.add(each);
  }
  return [...found].slice(0, limit);
}

/** The emoji with this shortcode; null if none has it. */
export function emojiOfCode(emojis: readonly Emoji[], code: string): string | null {
  return emojis.find(({ codes }) => codes.includes(code.toLowerCase()))?.emoji ?? null;
}

/** An emoji with a skin tone (0 is none), if it can have one. */
export function withTone({ emoji, hasTones }: Emoji, tone: number): string {
  const [first = '', ...rest] = emoji;
  if (!hasTones || tone === 0) return emoji;
  return [first, TONES[tone], ...(rest[0] === '\uFE0F' ? rest.slice(1) : rest)].join('');
}
