import t from 'tap';
import { canonicalEmoji, isEmoji } from '../../src/domain/comments/emoji.ts';
import { emojiOfCode, findEmojis, parseEmojis, withTone } from '../../src/widget/emoji/list.ts';
import { readSource } from '../helpers/sources.ts';

const groups = parseEmojis(readSource('src/widget/emoji/emojis.txt'));
const emojis = groups.flat();

t.test(
  'every emoji of the widget is one that Unicode recommends, in every tone, and the server stores it as it is',
  (t) => {
    const recommended = new RegExp('^\\p{RGI_Emoji}$', 'v');
    t.ok(emojis.length > 1_800);
    t.equal(groups.length, 9);
    const all = emojis.flatMap((each) => [0, 1, 5].map((tone) => withTone(each, tone)));
    t.same(
      all.filter((emoji) => !recommended.test(emoji)),
      [],
    );
    t.same(
      all.filter((emoji) => !isEmoji(emoji) || canonicalEmoji(emoji) !== emoji),
      [],
    );
    t.same(
      emojis.filter(({ codes }) => codes.some((code) => !/^[\w+-]+$/.test(code))),
      [],
      'each has shortcodes',
    );
    t.end();
  },
);

t.test('emoji are found by their shortcodes and by words', (t) => {
  const found = (text: string): string[] => findEmojis(emojis, text, 6).map(({ emoji }) => emoji);
  t.equal(found('tada')[0], '🎉');
  t.equal(found('heart')[0], '❤️');
  t.ok(found('celebrate').includes('🎉'));
  t.ok(found('thumbs up').includes('👍'));
  t.same(found('no such emoji'), []);
  t.equal(emojiOfCode(emojis, 'TADA'), '🎉');
  t.equal(emojiOfCode(emojis, '+1'), '👍');
  t.equal(emojiOfCode(emojis, 'nothing'), null);
  t.equal(withTone({ emoji: '✌️', hasTones: true, codes: [], words: [] }, 3), '✌🏽');
  t.end();
});
