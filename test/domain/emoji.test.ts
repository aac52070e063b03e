import t from 'tap';
import { isEmoji } from '../../src/domain/comments/emoji.ts';

t.test('one emoji in any common form is a reaction', (t) => {
  for (const emoji of ['👍', '👍🏽', '❤', '❤️', '☺️', '😀', '👩‍💻', '👩🏾‍🚀', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🏴‍☠️', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇩🇪', '1️⃣', '#️⃣', '©️', '🫶', ':+1:', ':party-parrot:', ':x:', `:${'a'.repeat(62)}:`]) {
    t.ok(isEmoji(emoji), emoji);
  }
  t.end();
});

t.test('any other text is not a reaction', (t) => {
  const others = ['', ' ', 'a', '1', '#', 'ok', '👍👍', '👍 ', ' 👍', '👍a', '🇩', '🇩🇪🇫', 'ä', '漢', '\ud83d', '\u200d', '\ufe0f', '🏽🏽', '👍\u0301', '😀\u200d', ':', '::', ':a', 'a:', ': a:', ':a b:', ':ä:', '<b>', '&#128077;', `:${'a'.repeat(63)}:`, '👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦'];
  for (const text of others) t.notOk(isEmoji(text), JSON.stringify(text));
  t.end();
});
