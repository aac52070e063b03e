import t from 'tap';
import { choose, mentionedIn, movePlaces } from '../../src/widget/core/mentioned.ts';

/** Who a text mentions, when all these names were chosen. */
function mentioned(text: string, mentions: Readonly<Record<string, string>>): string[] {
  return mentionedIn({ text, mentions });
}

t.test(
  'a chosen user is mentioned while the text names them, and not by a longer word that begins like the name',
  (t) => {
    const bob = { bob: 'Bob' };
    for (const text of ['@Bob', '@Bob, look', '(@Bob)', '@Bobby is not @Bob', '@Bob 2', '@Bob’s'])
      t.same(mentioned(text, bob), ['bob'], text);
    for (const text of ['@Bobby is not Bob', '@Bob2', '@Bobé', '@Bobe\u0301', '@Bob𝒳', '@Bobж', 'Bob', ''])
      t.same(mentioned(text, bob), [], text);
    t.end();
  },
);

t.test('where one name is the beginning of another, the longer one is meant', (t) => {
  const both = { bob: 'Bob', smith: 'Bob Smith' };
  t.same(mentioned('@Bob Smith, look', both), ['smith']);
  t.same(mentioned('@Bob Smith and @Bob', both), ['bob', 'smith']);
  t.same(mentioned('@Bob Smithson', both), ['bob']);
  t.same(mentioned('@Bob', { bob: 'Bob', other: 'Bob' }), ['bob', 'other'], 'two of the same name');
  t.end();
});

t.test('of two people with one name, the one who was chosen at a place is meant', (t) => {
  const empty = { text: '@Max ', mentions: {}, places: [] };
  const first = choose(empty, 'max1', 'Max', 0);
  t.same(mentionedIn(first), ['max1']);
  const cleared = { ...first, text: '', places: movePlaces(first.places, first.text, '', 0) };
  const again = choose({ ...cleared, text: '@Max ' }, 'max2', 'Max', 0);
  t.same(mentionedIn(again), ['max2'], 'after clearing and choosing again');
  const both = choose({ ...first, text: '@Max @Max ' }, 'max2', 'Max', 5);
  t.same(mentionedIn(both), ['max1', 'max2']);
  const text = '@Max ';
  t.same(
    mentionedIn({ ...both, text, places: movePlaces(both.places, both.text, text, 0) }),
    ['max2'],
    'the first one was deleted',
  );
  t.same(mentionedIn({ ...first, places: [] }), ['max1'], 'cut and pasted');
  t.end();
});

t.test('the places of mentions move with the text', (t) => {
  const places = [{ userId: 'max', at: 4 }];
  const at = (before: string, after: string, caret: number): number | undefined =>
    movePlaces(places, before, after, caret)[0]?.at;
  t.equal(at('Ask @Max', 'Do ask @Max', 6), 7, 'text before it');
  t.equal(at('Ask @Max', 'Ask @Max now', 12), 4, 'text behind it');
  t.equal(at('Ask @Max', 'Ask @@Max', 5), 5, 'the same character before it, as the cursor tells');
  t.equal(at('Ask @Max', 'Ask @@Max', 6), 4, 'or behind it');
  t.equal(at('Ask @Max', 'Ask Max', 4), undefined, 'a deleted @');
  t.end();
});
