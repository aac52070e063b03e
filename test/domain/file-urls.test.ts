import t from 'tap';
import { containsFileUrls, withFileUrls } from '../../src/domain/files/file-urls.ts';

const BASE = 'https://comments.example.com/base';
const image = {
  id: 'file_1',
  type: 'image',
  filename: 'a.png',
  mimeType: 'image/png',
  sizeBytes: 3,
  url: '/files/env_1/file_1',
  thumbnailUrl: '/files/env_1/file_1?thumb=1',
  width: 2,
  height: 1,
};
const sound = {
  id: 'file_2',
  type: 'audio',
  filename: 'b.wav',
  mimeType: 'audio/wav',
  sizeBytes: 3,
  url: '/files/env_1/file_2',
  durationMs: 7,
};

const comment = (attachments: readonly object[], more: object = {}): object => ({
  id: 'com_1',
  body: 'x',
  mentions: [],
  attachments,
  metadata: {},
  ...more,
});
const rewritten = (value: unknown, base = BASE): unknown => JSON.parse(withFileUrls(JSON.stringify(value), base));

const shownImage = { ...image, url: `${BASE}/files/env_1/file_1`, thumbnailUrl: `${BASE}/files/env_1/file_1?thumb=1` };
const shownSound = { ...sound, url: `${BASE}/files/env_1/file_2` };

t.test('the URLs of all attachments become absolute', (t) => {
  t.strictSame(rewritten(comment([image])), comment([shownImage]));
  t.strictSame(rewritten({ comment: comment([sound, image, sound]) }), {
    comment: comment([shownSound, shownImage, shownSound]),
  });
  const list = { items: [comment([]), comment([image]), comment([]), comment([sound, image])], nextCursor: 'abc' };
  t.strictSame(rewritten(list), {
    items: [comment([]), comment([shownImage]), comment([]), comment([shownSound, shownImage])],
    nextCursor: 'abc',
  });
  t.strictSame(rewritten(comment([image]), ''), comment([image]), 'unless the address is unknown');
  t.end();
});

t.test('the address under which a file was uploaded is replaced', (t) => {
  const stored = {
    ...image,
    url: `http://evil.example${image.url}`,
    thumbnailUrl: `http://evil.example${image.thumbnailUrl}`,
  };
  t.strictSame(rewritten(comment([stored, sound])), comment([shownImage, shownSound]));
  t.strictSame(rewritten(comment([shownImage])), comment([shownImage]));
  t.end();
});

t.test('content of users is not changed', (t) => {
  const text = JSON.stringify(comment([image]));
  const texts = [
    comment([], { body: text }),
    comment([], { metadata: { url: '/files/env_1/file_1', thumbnailUrl: '/files/env_1/file_1?thumb=1' } }),
    comment([], { body: '"attachments":[{"url":"/files/env_1/file_1"}]' }),
  ];
  for (const value of texts) {
    t.strictSame(rewritten(value), value);
    t.notOk(containsFileUrls(JSON.stringify(value)));
    t.strictSame(rewritten({ items: [value, comment([image]), value] }), {
      items: [value, comment([shownImage]), value],
    });
  }
  const odd = { ...image, filename: '"url":"/files/x"}],"attachments":[{"url":"/files/y".png' };
  t.strictSame(
    rewritten(comment([odd, sound])),
    comment([{ ...odd, url: shownImage.url, thumbnailUrl: shownImage.thumbnailUrl }, shownSound]),
  );
  const braces = { ...sound, filename: '}]},{.wav' };
  t.strictSame(
    rewritten(comment([braces, image], { metadata: { url: '/files/z' } })),
    comment([{ ...braces, url: shownSound.url }, shownImage], { metadata: { url: '/files/z' } }),
  );
  t.end();
});

t.test('with any configured address, the text stays valid JSON', (t) => {
  t.match(rewritten(comment([sound]), 'https://a"b\\c'), {
    attachments: [{ url: 'https://a"b\\c/files/env_1/file_2' }],
  });
  t.match(rewritten(comment([sound]), 'https://a/$&$1'), {
    attachments: [{ url: 'https://a/$&$1/files/env_1/file_2' }],
  });
  t.end();
});
