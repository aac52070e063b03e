/** A flag, a keycap, or a pictograph with what may follow it, joined to others where it is a family or a profession. */
const ELEMENT = String.raw`\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\uFE0F|[\u{E0020}-\u{E007E}]+\u{E007F})?`;
const EMOJI = new RegExp(String.raw`^(?:\p{Regional_Indicator}{2}|[0-9#*]\uFE0F?\u20E3|${ELEMENT}(?:\u200D${ELEMENT})*)$`, 'u');
const SHORTCODE = /^:[A-Za-z0-9_+-]+:$/;
const MAX_BYTES = 64;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Whether text can be a reaction: one emoji, one character to the eye, or a `:shortcode:`; at most 64 bytes of UTF-8. */
export function isEmoji(text: string): boolean {
  if (text.length > MAX_BYTES || Buffer.byteLength(text) > MAX_BYTES) return false;
  if (SHORTCODE.test(text)) return true;
  return EMOJI.test(text) && [...graphemes.segment(text)].length === 1;
}
