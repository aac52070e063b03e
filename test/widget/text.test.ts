import t from 'tap';
import { mentionedIn } from '../../src/widget/core/mentioned.ts';
import { type Inline, parseInline } from '../../src/widget/text/inline.ts';
import { parseMarkdown } from '../../src/widget/text/markdown.ts';
import { safeLine, safeText } from '../../src/widget/text/safe-text.ts';

const names = new Map([
  ['ann', 'Ann'],
  ['maria', 'Maria Sørensen'],
  ['mar', 'Maria'],
]);

/** A line as nested arrays: text as it is, marks as `[kind, …content]`. */
function outline(inlines: readonly Inline[]): unknown[] {
  return inlines.map((inline) => {
    if (inline.kind === 'text') return inline.text;
    if (inline.kind === 'code') return ['code', inline.text];
    if (inline.kind === 'mention') return ['mention', inline.userId];
    if (inline.kind === 'link') return ['link', inline.href, ...outline(inline.content)];
    return [inline.kind, ...outline('content' in inline ? inline.content : [])];
  });
}

function line(text: string): unknown[] {
  const [block] = parseMarkdown(text, names);
  return block?.kind === 'paragraph' ? outline(block.lines[0] ?? []) : [block?.kind];
}

t.test('bold, italic, struck out and code are marked; unfinished marks are text', (t) => {
  t.same(line('a **b _c_** ~~d~~ `e *f*`'), [
    'a ',
    ['strong', 'b ', ['emphasis', 'c']],
    ' ',
    ['deleted', 'd'],
    ' ',
    ['code', 'e *f*'],
  ]);
  for (const text of ['2 * 3 * 4', '**never ends', 'snake_case_name', '`', '****', '_ _', '[text](no link)'])
    t.same(line(text), [text], text);
  t.end();
});

t.test('only web and mail addresses become links, and punctuation behind them stays outside', (t) => {
  t.same(line('see https://a.example/b?c=1, or (https://d.example).'), [
    'see ',
    ['link', 'https://a.example/b?c=1', 'https://a.example/b?c=1'],
    ', or (',
    ['link', 'https://d.example/', 'https://d.example'],
    ').',
  ]);
  t.same(line('[mail](mailto:a@b.example)'), [['link', 'mailto:a@b.example', 'mail']]);
  const refused = [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    '//evil.example',
    'https://user:password@evil.example',
    ' file:///etc/passwd',
  ];
  for (const href of refused) t.notMatch(JSON.stringify(line(`[x](${href})`)), '"link"', href);
  t.end();
});

t.test('mentions are those of the comment, the longest name first', (t) => {
  t.same(line('@Maria Sørensen and @Ann, not @Bob, not mail@Ann'), [
    ['mention', 'maria'],
    ' and ',
    ['mention', 'ann'],
    ', not @Bob, not mail@Ann',
  ]);
  t.end();
});

t.test('a longer word that begins like a name is no mention of it, as it is when the comment is sent', (t) => {
  const bob = [
    ['bob', 'Bob'],
    ['smith', 'Bob Smith'],
  ] as const;
  for (const text of [
    '@Bob',
    '@Bob, look',
    '(@Bob)',
    '@Bobby',
    '@Bob2',
    '@Bobe\u0301',
    '@Bob𝒳',
    '@Bob Smithson',
    '@Bob Smith',
    'mail@Bob',
    'é@Bob',
    '@Bob’s',
  ]) {
    const shown = outline(parseInline(text, new Map(bob))).flatMap((piece) => (Array.isArray(piece) ? [piece[1]] : []));
    t.same(shown, mentionedIn({ text, mentions: Object.fromEntries(bob) }), text);
  }
  t.same(outline(parseInline('@Bobby and @Bob', new Map(bob))), ['@Bobby and ', ['mention', 'bob']]);
  t.end();
});

t.test('blocks: paragraphs with line breaks, lists, quotes and code', (t) => {
  const blocks = parseMarkdown('a\nb\n\n- c\n- d\n3. e\n> f\n```\n<g>\n**h**\n```\ni', names);
  t.same(
    blocks.map(({ kind }) => kind),
    ['paragraph', 'list', 'list', 'quote', 'code', 'paragraph'],
  );
  t.match(blocks[0], { lines: { length: 2 } });
  t.match(blocks[2], { ordered: true, start: 3 });
  t.match(blocks[4], { text: '<g>\n**h**' });
  t.same(
    parseMarkdown('# no heading\n![x](https://a.example/x.png)', names).map(({ kind }) => kind),
    ['paragraph'],
  );
  t.end();
});

t.test('hostile text of 10 000 characters is parsed, and all of it is there', (t) => {
  for (const text of ['**', '[', '](', '_a', '`', '@', '> ', 'https://', '*'].map((piece) =>
    piece.repeat(10_000 / piece.length),
  )) {
    t.ok(JSON.stringify(parseMarkdown(text, names)).length > 1_000, text.slice(0, 8));
  }
  t.end();
});

t.test('characters that hide or reorder the text around them are dropped, those of scripts and emoji stay', (t) => {
  t.equal(safeText('a\u202Eb\u2066c\u200Bd\uFEFFe\u0000f\u0085g'), 'abcdefg');
  t.equal(safeText('line\r\nbreak\rtab\t'), 'line\nbreak\ntab\t');
  t.equal(safeText('👩‍👩‍👧 می‌خواهم'), '👩‍👩‍👧 می‌خواهم');
  t.equal(safeText(`Z${'\u0301'.repeat(100)}`).length, 5);
  t.equal(safeLine(' a\n b '), 'a b');
  t.equal(safeLine('x'.repeat(100), 10), `${'x'.repeat(9)}…`);
  t.equal(safeLine('😀'.repeat(10), 10), '😀😀😀😀…', 'no half of a character');
  t.end();
});

t.test('a line is not cut within what is seen as one character', (t) => {
  const family = '👨‍👩‍👧‍👦';
  t.equal(safeLine(family.repeat(3), 2 * family.length), `${family}…`);
  t.equal(safeLine('e\u0301'.repeat(3), 4), 'e\u0301…');
  t.equal(safeLine('x'.repeat(9), 5), 'xxxx…');
  t.equal(safeLine(family, family.length), family);
  t.end();
});
