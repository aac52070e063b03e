import t from 'tap';
import { canonicalEmoji, isEmoji } from '../../src/domain/comments/emoji.ts';

t.test('one emoji in any common form is a reaction', (t) => {
  for (const emoji of [
    '👍',
    '👍🏽',
    '❤',
    '❤️',
    '☺️',
    '😀',
    '👩‍💻',
    '👩🏾‍🚀',
    '👨‍👩‍👧‍👦',
    '🏳️‍🌈',
    '🏴‍☠️',
    '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
    '🇩🇪',
    '1️⃣',
    '#️⃣',
    '©️',
    '🫶',
    ':+1:',
    ':party-parrot:',
    ':x:',
    `:${'a'.repeat(62)}:`,
  ]) {
    t.ok(isEmoji(emoji), emoji);
  }
  t.end();
});

t.test('any other text is not a reaction', (t) => {
  const others = [
    '',
    ' ',
    'a',
    '1',
    '#',
    'ok',
    '👍👍',
    '👍 ',
    ' 👍',
    '👍a',
    '🇩',
    '🇩🇪🇫',
    'ä',
    '漢',
    '\ud83d',
    '\u200d',
    '\ufe0f',
    '🏽🏽',
    '👍\u0301',
    '😀\u200d',
    ':',
    '::',
    ':a',
    'a:',
    ': a:',
    ':a b:',
    ':ä:',
    '<b>',
    '&#128077;',
    `:${'a'.repeat(63)}:`,
    '👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦‍👨‍👩‍👧‍👦',
  ];
  for (const text of others) t.notOk(isEmoji(text), JSON.stringify(text));
  t.end();
});

t.test('an emoji has one spelling, with or without variation selectors', (t) => {
  for (const [spelling, canonical] of [
    ['❤', '❤️'],
    ['❤️', '❤️'],
    ['☺', '☺️'],
    ['👍\ufe0f', '👍'],
    ['👍🏽', '👍🏽'],
    ['✌🏽', '✌🏽'],
    ['❤\u200d🔥', '❤️\u200d🔥'],
    ['🏳\u200d🌈', '🏳️\u200d🌈'],
    ['👁\u200d🗨', '👁️\u200d🗨️'],
    ['1\u20e3', '1️⃣'],
    ['1️⃣', '1️⃣'],
    ['©', '©️'],
    ['🇩🇪', '🇩🇪'],
    ['🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
    [':heart:', ':heart:'],
  ] as const) {
    t.equal(canonicalEmoji(spelling), canonical, spelling);
    t.equal(canonicalEmoji(canonical), canonical, `${canonical} stays`);
    t.ok(isEmoji(canonical));
  }
  t.end();
});
