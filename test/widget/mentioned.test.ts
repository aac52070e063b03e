import t from 'tap';
import { mentionedIn } from '../../src/widget/core/mentioned.ts';

/** Who a text mentions, when all these names were chosen. */
function mentioned(text: string, mentions: Readonly<Record<string, string>>): string[] {
  return mentionedIn({ text, mentions });
}

t.test('a chosen user is mentioned while the text names them, and not by a longer word that begins like the name', (t) => {
  const bob = { bob: 'Bob' };
  for (const text of ['@Bob', '@Bob, look', '(@Bob)', '@Bobby is not @Bob', '@Bob 2', '@Bob’s']) t.same(mentioned(text, bob), ['bob'], text);
  for (const text of ['@Bobby is not Bob', '@Bob2', '@Bobé', '@Bobe\u0301', '@Bob𝒳', '@Bobж', 'Bob', '']) t.same(mentioned(text, bob), [], text);
  t.end();
});

t.test('where one name is the beginning of another, the longer one is meant', (t) => {
  const both = { bob: 'Bob', smith: 'Bob Smith' };
  t.same(mentioned('@Bob Smith, look', both), ['smith']);
  t.same(mentioned('@Bob Smith and @Bob', both), ['bob', 'smith']);
  t.same(mentioned('@Bob Smithson', both), ['bob']);
  t.same(mentioned('@Bob', { bob: 'Bob', other: 'Bob' }), ['bob', 'other'], 'two of the same name');
  t.end();
});
