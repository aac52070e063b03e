/** A pictograph with its modifiers. An emoji is a flag, a keycap, or one or more of these joined by zero-width joiners. */
const ELEMENT = String.raw`\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\uFE0F|[\u{E0020}-\u{E007E}]+\u{E007F})?`;
const EMOJI = new RegExp(String.raw`^(?:\p{Regional_Indicator}{2}|[0-9#*]\uFE0F?\u20E3|${ELEMENT}(?:\u200D${ELEMENT})*)$`, 'u');
const SHORTCODE = /^:[A-Za-z0-9_+-]+:$/;
const MAX_BYTES = 64;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Whether text can be a reaction: one emoji that is a single grapheme, or a `:shortcode:`; at most 64 bytes of UTF-8. */
export function isEmoji(text: string): boolean {
  if (text.length > MAX_BYTES || Buffer.byteLength(text) > MAX_BYTES) return false;
  if (SHORTCODE.test(text)) return true;
  return EMOJI.test(text) && [...graphemes.segment(text)].length === 1;
}
