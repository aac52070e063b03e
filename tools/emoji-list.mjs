// Writes src/widget/emoji/emojis.txt from the package emojibase-data (MIT): `node tools/emoji-list.mjs <folder of the
// package>`. A line is an emoji, `+` if it has skin tones, its shortcodes, and the words it is found by. `#` begins the
// next group.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (path) => JSON.parse(readFileSync(join(process.argv[2], 'en', path), 'utf8'));
const [github, emojibase] = ['shortcodes/github.json', 'shortcodes/emojibase.json'].map(read);
const COMPONENTS = 2;
const emojis = read('data.json').filter(({ group }) => group !== undefined && group !== COMPONENTS);

let last = null;
const lines = emojis
  .toSorted((a, b) => a.order - b.order)
  .flatMap(({ emoji, group, hexcode, label, skins = [], tags = [] }) => {
    const [first = '', ...rest] = emoji.replaceAll('\uFE0F', '');
    // Of those of several people only some have a tone for each.
    const hasTones =
      skins.length === 5 && skins[0].emoji.replaceAll('\uFE0F', '') === [first, '\u{1F3FB}', ...rest].join('');
    const codes = [...new Set([github[hexcode] ?? [], [emojibase[hexcode] ?? []].flat().slice(0, 1)].flat())].slice(
      0,
      3,
    );
    const known = new Set(codes.flatMap((code) => code.split('_')));
    const words = [
      ...new Set(
        [label, ...tags]
          .join(' ')
          .toLowerCase()
          .split(/[\s:,]+/),
      ),
    ].filter((word) => word !== '' && !known.has(word));
    // Those that are emoji by default need no selector.
    const line = `${emoji.replaceAll(/(\p{Emoji_Presentation})\uFE0F/gu, '$1')}${hasTones ? '+' : ''}\t${codes.join(' ')}\t${words.join(' ')}`;
    const isNext = last !== null && last !== group;
    last = group;
    return isNext ? ['#', line] : [line];
  });
writeFileSync('src/widget/emoji/emojis.txt', `${lines.join('\n')}\n`);
