import t from 'tap';
import { foldText } from '../../src/lib/fold-text.ts';

t.test('texts that people take for the same fold to one', (t) => {
  const same = [
    ['İbrahim', 'IBRAHIM', 'ıbrahım', 'ibrahim'],
    ['Émile'.normalize('NFC'), 'Émile'.normalize('NFD'), 'emile'],
    ['Groß', 'GROSS'],
    ['ΟΔΥΣΣΕΥΣ', 'Οδυσσεύς'],
    ['Łukasz Øre', 'lukasz ore'],
    ['Ａｎｎ', 'ann'],
    ['O’Brien', "o'brien"],
    ['각'.normalize('NFC'), '각'.normalize('NFD')],
  ];
  for (const texts of same) t.equal(new Set(texts.map(foldText)).size, 1, texts.join(' = '));
  t.end();
});

t.test('texts that differ in a letter stay different', (t) => {
  for (const [one, other] of [
    ['กิ', 'กา'],
    ['कि', 'का'],
    ['ann', 'an'],
    ['', '-'],
  ] as const)
    t.not(foldText(one), foldText(other));
  t.end();
});

t.test('folding twice changes nothing', (t) => {
  for (const text of ['İ', 'ǅ', 'ﬀ', 'ŉ', 'ᾳ', 'ẞ', '’', 'ﷺ']) t.equal(foldText(foldText(text)), foldText(text), text);
  t.end();
});
