import t from 'tap';
import { attributes, customProperties, events, parts, properties } from '../../src/widget/interface.ts';
import { personOf } from '../../src/widget/core/people.ts';
import { fileSize } from '../../src/widget/media/format.ts';
import { linkTo, readLink } from '../../src/widget/core/link.ts';
import { clusterPins } from '../../src/widget/pins/cluster.ts';
import { linkOnPage, pageAt, pageOf } from '../../src/widget/pins/page.ts';
import { placePopover } from '../../src/widget/pins/place-popover.ts';
import { en, type StringKey, type Text } from '../../src/widget/strings/en.ts';
import { enLater } from '../../src/widget/strings/en-later.ts';
import { Language } from '../../src/widget/strings/language.ts';
import { loadStrings } from '../../src/widget/strings/languages.ts';
import { importsOf, projectFiles, readSource } from '../helpers/sources.ts';

const sources = projectFiles().filter((path) => path.startsWith('src/widget/') && !path.endsWith('interface.ts'));
const found = (pattern: RegExp): string[] =>
  [
    ...new Set(
      sources.flatMap((path) => [...readSource(path).matchAll(pattern)].flatMap(([, names = '']) => names.split(' '))),
    ),
  ].toSorted();
const names = (rows: readonly { name: string }[]): string[] => rows.map(({ name }) => name).toSorted();

t.test('the documented interface is that of the source', (t) => {
  t.same(names(parts), found(/part="([a-z -]+)"/g));
  t.same(names(events), found(/dispatch\('(collab-[a-z-]+)'/g));
  t.same(names(customProperties), found(/var\((--collab-[a-z-]+)/g));
  const declared =
    /static override properties = \{([^]*?)\n {2}\};/.exec(readSource('src/widget/collab-comments.ts'))?.[1] ?? '';
  const rows = [...declared.matchAll(/^ {4}(\w+): \{(.*)\},$/gm)].map(([, name = '', options = '']) => ({
    name: /attribute: '([a-z-]+)'/.exec(options)?.[1] ?? name,
    attribute: !options.includes('attribute: false'),
  }));
  t.same(names(attributes), names(rows.filter(({ attribute }) => attribute)));
  t.same(names(properties), names(rows.filter(({ attribute }) => !attribute)));
  t.end();
});

const languages = ['ar', 'de', 'es', 'fr', 'he', 'it', 'ja', 'ko', 'nl', 'pl', 'pt-BR', 'zh-Hans'];

t.test(
  'every language has every text with the same values and all forms of its plural, and every text is used',
  async (t) => {
    const values = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(([value]) => value).toSorted();
    const other = (text: Text): string => (typeof text === 'string' ? text : text.other);
    const english: Record<string, Text> = { ...en, ...enLater };
    for (const tag of languages) {
      const { strings = {} } = (await loadStrings([tag])) ?? {};
      t.same(Object.keys(strings).toSorted(), Object.keys(english).toSorted(), tag);
      const categories = new Intl.PluralRules(tag).resolvedOptions().pluralCategories.toSorted();
      for (const [key, text] of Object.entries(strings)) {
        t.same(values(other(text)), values(other(english[key] ?? '')), `${tag} ${key}`);
        if (typeof text === 'string') continue;
        // Spanish, French, Italian and Portuguese have a form for millions.
        for (const category of categories)
          if (category !== 'many' || tag === 'pl' || tag === 'ar') t.ok(category in text, `${tag} ${key} ${category}`);
        // A form that stands for one number may say it in words.
        for (const [category, form] of Object.entries(text))
          t.same(
            values(form).filter((value) => !values(text.other).includes(value)),
            [],
            `${tag} ${key} ${category}`,
          );
      }
    }
    const code = sources
      .filter((path) => !path.includes('/strings/'))
      .map(readSource)
      .join('\n');
    t.same(
      Object.keys(english).filter((key) => !code.includes(`'${key}'`)),
      [],
    );
    t.equal(new Language('xx-invalid-tag-that-is-too-long-to-be-one', { send: 'Go' }).text('send'), 'Go');
  },
);

t.test('numbers have the form of their language', async (t) => {
  const said = async (tag: string, key: StringKey, counts: readonly number[]): Promise<string[]> => {
    const language = new Language(tag, (await loadStrings([tag]))?.strings);
    return counts.map((count) => language.text(key, { count, seconds: count }));
  };
  t.same(await said('de-AT', 'replies', [1, 3]), ['1 Antwort', '3 Antworten']);
  t.same(await said('pl', 'cluster', [2, 5, 22]), [
    '2 wątki w tym miejscu',
    '5 wątków w tym miejscu',
    '22 wątki w tym miejscu',
  ]);
  t.same(await said('ar', 'replies', [1, 2, 3, 11]), ['رد واحد', 'ردّان', '3 ردود', '11 ردًا']);
  t.same(await said('de', 'queueWaiting', [1, 2]), [
    '1 Kommentar wartet auf eine Entscheidung',
    '2 Kommentare warten auf eine Entscheidung',
  ]);
  t.same(await said('pl', 'reportedTimes', [1, 2]), ['Zgłoszono raz', 'Zgłoszono 2 razy']);
  t.same(await said('fr', 'errorRate', [1]), ['C’est beaucoup d’un coup. Attendez 1 seconde, puis réessayez.']);
  t.equal(
    new Language('en', { replies: '{count} answers' }).text('replies', { count: 1 }),
    '1 answers',
    'a page may set one form for all',
  );
});

t.test('the first wanted language with texts is loaded, by its script and without its region', async (t) => {
  const loaded = async (...tags: string[]): Promise<string | undefined> => {
    const found = await loadStrings(tags);
    return found === null
      ? undefined
      : `${found.tag} ${found.strings.send === undefined ? '' : new Language(found.tag, found.strings).text('send')}`;
  };
  t.equal(await loaded('pt'), 'pt Enviar');
  t.equal(await loaded('pt-PT'), 'pt-PT Enviar');
  t.equal(await loaded('zh-CN'), 'zh-CN 发送');
  t.equal(await loaded('zh'), 'zh 发送');
  t.equal(await loaded('zh-TW'), undefined, 'traditional characters are another script');
  t.equal(await loaded('iw'), 'iw שליחה');
  t.equal(await loaded('FR-ca'), 'FR-ca Envoyer');
  t.equal(await loaded('sv', 'no tag', 'de-CH', 'fr'), 'de-CH Senden');
  t.equal(await loaded('sv', 'en-GB', 'fr'), 'en-GB ');
  t.equal(new Language('ar', (await loadStrings(['ar']))?.strings).isRtl, true);
  t.equal(new Language('ar', {}).isRtl, false, 'English texts');
});

t.test('the first part of the widget needs no English text that is loaded later', (t) => {
  const first = new Set(['src/widget/collab-comments.ts']);
  for (const path of first) {
    const withoutCalls = readSource(path).replaceAll(/\bimport\s*\(/g, 'later(');
    for (const { target, typeOnly } of importsOf(path, withoutCalls))
      if (!typeOnly && /^src\/widget\/.*\.ts$/.test(target)) first.add(target);
  }
  t.ok(first.size > 20 && !first.has('src/widget/views/opened.ts'));
  const code = [...first].map(readSource).join('\n');
  t.same(
    Object.keys(enLater).filter((key) => code.includes(`'${key}'`)),
    [],
  );
  t.end();
});

t.test('pins that would overlap are one cluster, apart from the open one', (t) => {
  const pins = [
    { id: 'a', x: 0, y: 0 },
    { id: 'b', x: 10, y: 10 },
    { id: 'c', x: 19, y: 0 },
    { id: 'd', x: 21, y: 0 },
    { id: 'e', x: -5, y: -5 },
  ];
  t.same(
    clusterPins(pins, 20).map(({ ids }) => ids),
    [['a', 'b', 'c', 'e'], ['d']],
  );
  t.same(
    clusterPins(pins, 20, new Set(['b'])).map(({ ids }) => ids),
    [['a', 'c', 'e'], ['b'], ['d']],
  );
  const many = Array.from({ length: 2_000 }, (_, index) => ({ id: String(index), x: index % 50, y: 0 }));
  t.equal(
    clusterPins(many, 26).reduce((sum, { ids }) => sum + ids.length, 0),
    2_000,
  );
  t.end();
});

t.test('a popover is beside its pin and within the free part of the window', (t) => {
  const size = { width: 360, height: 400 };
  const view = { left: 0, top: 0, width: 1000, height: 800 };
  const pin = (left: number, top: number) => ({ left, top, width: 32, height: 32 });
  t.same(placePopover(pin(100, 100), size, view, false), { left: 140, top: 100 });
  t.same(placePopover(pin(900, 700), size, view, false), { left: 532, top: 392 }, 'the other side, and up');
  t.same(placePopover(pin(600, 100), size, view, true), { left: 232, top: 100 }, 'from right to left');
  t.same(placePopover(pin(500, 0), size, { ...view, width: 600 }, false), { left: 132, top: 8 }, 'beside the panel');
  t.same(
    placePopover(pin(10, 10), size, { ...view, width: 320 }, false),
    { left: 8, top: 50 },
    'no room on either side: below',
  );
  t.same(placePopover(pin(10, 500), size, { ...view, width: 320 }, false), { left: 8, top: 92 }, 'or above');
  t.same(
    placePopover(pin(10, 200), size, { ...view, width: 320, height: 450 }, false),
    { left: 8, top: 42 },
    'nor there: as far below as the window reaches',
  );
  t.end();
});

t.test('sizes have their units', (t) => {
  t.same(
    [1, 70, 1_234, 56_000_000].map((bytes) => fileSize(bytes, 'en')),
    ['1 byte', '70 bytes', '1.2 kB', '56 MB'],
  );
  t.end();
});

t.test('the page of a position is a path of this site, whatever was written there', (t) => {
  const read = (page: unknown): string | null => pageOf({ x: 0, y: 0, fingerprint: JSON.stringify({ page }) });
  t.same(['/docs/intro', '/app#/settings'].map(read), ['/docs/intro', '/app#/settings']);
  t.same(
    [
      '//evil.example/',
      '/\\evil.example',
      'https://evil.example',
      'javascript:alert(1)',
      '/\t/evil.example',
      '/\t/[',
      '/\n\\evil.example',
      '/a\rb',
      7,
      null,
    ].map(read),
    Array(10).fill(null),
  );
  t.same(
    [
      linkOnPage('/docs', 'https://a.example/x?y=1', { threadId: 'th_1', commentId: null }),
      linkOnPage('/docs', 'about:srcdoc', { threadId: 'th_1', commentId: null }),
    ],
    ['https://a.example/docs#collab=th_1', '/docs'],
  );
  t.same(
    [pageAt({ pathname: '/app', hash: '#/settings?token=1' }), pageAt({ pathname: '/docs', hash: '#part' })],
    ['/app#/settings', '/docs'],
    'neither query nor place',
  );
  t.same([pageOf(null), pageOf({ x: 0, y: 0 }), pageOf({ x: 0, y: 0, fingerprint: 'no JSON' })], [null, null, null]);
  t.end();
});

t.test('people have initials and colours, bots and missing names included', (t) => {
  t.match(
    personOf('u1', { userId: 'u1', name: 'Maria \u202ESørensen', avatarUrl: 'javascript:alert(1)', kind: 'bot' }),
    { name: 'Maria Sørensen', initials: 'MS', avatarUrl: null, isBot: true },
  );
  t.match(personOf('ci-bot', undefined), { name: 'ci-bot', initials: 'CB', isBot: false });
  t.match(personOf('🙂', undefined), { initials: '?' });
  t.equal(personOf('ann', undefined).hue, personOf('ann', undefined).hue);
  t.end();
});

t.test('links lead to threads and comments, and to nothing else', (t) => {
  const link = linkTo('https://a.example/page?x=1#old', { threadId: 'th_1', commentId: 'cm_2' });
  t.equal(link, 'https://a.example/page?x=1#collab=th_1/cm_2');
  t.same(readLink(new URL(link).hash), { threadId: 'th_1', commentId: 'cm_2' });
  t.same(readLink('#collab=th_1'), { threadId: 'th_1', commentId: null });
  for (const hash of ['', '#top', '#collab=', '#collab=a/b/c', '#collab=<b>']) t.equal(readLink(hash), null, hash);
  t.end();
});
