import t from 'tap';
import { isEmoji } from '../../src/domain/comments/emoji.ts';

t.test('one emoji is a reaction, in every form that people send', (t) => {
  for (const emoji of ['👍', '👍🏽', '❤', '❤️', '☺️', '😀', '👩‍💻', '👩🏾‍🚀', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🏴‍☠️', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇩🇪', '1️⃣', '#️⃣', '©️', '🫶', ':+1:', ':party-parrot:', ':x:', `:${'a'.repeat(62)}:`]) {
    t.ok(isEmoji(emoji), emoji);
  }
  t.end();
});

t.test('all else is none', (t) => {
  const others = ['', ' ', 'a', '1', '#', 'ok', '👍👍', '👍 ', ' 👍', '👍a', '🇩', '🇩🇪🇫', 'ä', '漢', '\ud83d', '\u200d', '\ufe0f', '🏽🏽', '👍\u0301', '😀\u200d', ':', '::', ':a', 'a:', ': a:', ':a b:', ':ä:', '<b>', '&#128077;', `:${'a'.repeat(63)}:`, '👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦'];
  for (const text of others) t.notOk(isEmoji(text), JSON.stringify(text));
  t.end();
});
