/*! The emoji, their shortcodes and words are those of emojibase-data 17.0.0. Copyright Miles Johnson, MIT License. */
import text from './emojis.txt';
import { parseEmojis } from './list.ts';

/** All emoji, in the groups of Unicode. A file of its own, which is loaded when somebody looks for an emoji. */
export const groups = parseEmojis(text);

/** All emoji in one list. */
export const emojis = groups.flat();
