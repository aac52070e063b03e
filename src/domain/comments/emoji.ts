/**
 * A pictograph with its modifiers. An emoji is a flag, a keycap, or one or more of these joined by zero-width joiners.
 */
const ELEMENT = String.raw`\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\uFE0F|[\u{E0020}-\u{E007E}]+\u{E007F})?`;
const EMOJI = new RegExp(
  String.raw`^(?:\p{Regional_Indicator}{2}|[0-9#*]\uFE0F?\u20E3|${ELEMENT}(?:\u200D${ELEMENT})*)$`,
  'u',
);
const SHORTCODE = /^:[A-Za-z0-9_+-]+:$/;
const MAX_BYTES = 64;

/**
 * Created with the first reaction: it loads the rules of ICU, which takes some ten milliseconds of a worker's start.
 */
let segmenter: Intl.Segmenter | undefined;

const EMOJI_STYLE = '\uFE0F';
const KEYCAP = /^([0-9#*])\uFE0F?(\u20E3)$/;
/** A pictograph that is text by default, and is not coloured by a modifier: it needs `EMOJI_STYLE` to be an emoji. */
const TEXT_BY_DEFAULT = /(?!\p{Emoji_Presentation})(\p{Extended_Pictographic})(?!\p{Emoji_Modifier}|\uFE0F)/gu;
const NEEDLESS_STYLE = /(\p{Emoji_Presentation}|\p{Emoji_Modifier})\uFE0F/gu;

/**
 * The one spelling of a reaction: an emoji that platforms write with or without a variation selector gets its
 * fully-qualified form (Unicode TS 51), so ❤ and ❤️ are the same. A `:shortcode:` stays as it is.
 */
export function canonicalEmoji(text: string): string {
  if (SHORTCODE.test(text)) return text;
  return text
    .replace(KEYCAP, `$1${EMOJI_STYLE}$2`)
    .replace(NEEDLESS_STYLE, '$1')
    .replace(TEXT_BY_DEFAULT, `$1${EMOJI_STYLE}`);
}

/**
 * Whether text can be a reaction: one emoji that is a single grapheme, or a `:shortcode:`; at most 64 bytes of UTF-8.
 */
export function isEmoji(text: string): boolean {
  if (text.length > MAX_BYTES || Buffer.byteLength(text) > MAX_BYTES) return false;
  if (SHORTCODE.test(text)) return true;
  if (!EMOJI.test(text)) return false;
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return [...segmenter.segment(text)].length === 1;
}
