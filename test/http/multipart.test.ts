import t from 'tap';
import { MultipartParser } from '../../src/http/core/multipart.ts';
import { boundaryOf, type PartHead } from '../../src/http/core/part-headers.ts';

interface Part extends PartHead {
  readonly data: string;
}

/** The parts of a body that arrives in these chunks. Throws if the body is malformed or incomplete. */
function parse(boundary: string, pieces: readonly Buffer[]): Part[] {
  const parser = new MultipartParser(boundary);
  const parts: Part[] = [];
  let head: PartHead | null = null;
  let data: Buffer[] = [];
  for (const bytes of pieces) {
    for (const piece of parser.push(bytes)) {
      if (piece.type === 'part') head = piece.head;
      if (piece.type === 'data') data.push(Buffer.from(piece.bytes));
      if (piece.type === 'partEnd' && head !== null) {
        parts.push({ ...head, data: Buffer.concat(data).toString('latin1') });
        data = [];
      }
    }
  }
  if (!parser.isComplete) throw new Error('not complete');
  return parts;
}

const body = Buffer.from(
  [
    'a preamble',
    '--xYz',
    'Content-Disposition: form-data; name="note"',
    '',
    'text',
    '--xYz  ',
    'content-disposition:form-data; name="file"; filename="a \\"b\\" ü.png"',
    'CONTENT-TYPE: image/png; a=b',
    '',
    'one\r\n--xY\r\r\n--x\r\n\r\n--xYtwo\r',
    '--xYz',
    'Content-Disposition: form-data; name=empty; filename=""',
    '',
    '',
    '--xYz',
    'Content-Disposition: form-data; name="n"',
    '',
    '\r\n',
    '--xYz--',
    'an epilogue --xYz',
  ].join('\r\n'),
);

const expected: Part[] = [
  { name: 'note', filename: null, contentType: null, data: 'text' },
  {
    name: 'file',
    filename: 'a "b" ü.png',
    contentType: 'image/png; a=b',
    data: 'one\r\n--xY\r\r\n--x\r\n\r\n--xYtwo\r',
  },
  { name: 'empty', filename: '', contentType: null, data: '' },
  { name: 'n', filename: null, contentType: null, data: '\r\n' },
];

t.test('a body in one chunk', (t) => {
  t.same(parse('xYz', [body]), expected);
  t.end();
});

t.test('a body split at every byte, and into single bytes, is the same', (t) => {
  for (let at = 1; at < body.length; at++) {
    const parts = parse('xYz', [body.subarray(0, at), body.subarray(at)]);
    if (JSON.stringify(parts) !== JSON.stringify(expected)) t.same(parts, expected, `split at ${at}`);
  }
  t.same(
    parse(
      'xYz',
      [...body].map((byte) => Buffer.of(byte)),
    ),
    expected,
  );
  t.end();
});

t.test('data is passed on as it arrives, except what may be a boundary', (t) => {
  const parser = new MultipartParser('b');
  const sizes: number[] = [];
  const feed = (text: string): void => {
    for (const piece of parser.push(Buffer.from(text))) if (piece.type === 'data') sizes.push(piece.bytes.length);
  };
  feed('--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n');
  feed('x'.repeat(100_000));
  t.same(sizes, [100_000]);
  feed(`${'x'.repeat(1000)}\r\n--`);
  t.same(sizes, [100_000, 1000]);
  feed('c');
  t.same(sizes, [100_000, 1000, 5], 'it was not a boundary');
  feed('\r\n--b--');
  t.ok(parser.isComplete);
  t.end();
});

t.test('a malformed body is refused with the reason', (t) => {
  const head = '--b\r\nContent-Disposition: form-data; name="file"\r\n';
  const cases: [text: string, message: RegExp][] = [
    ['x'.repeat(9000), /does not begin with the boundary/],
    ['--bx\r\n', /followed by neither/],
    ['--b-x', /followed by neither/],
    ['--b     -', /followed by neither/],
    ['--b\r\nContent-Disposition: attachment; name="file"\r\n\r\n', /no Content-Disposition: form-data/],
    ['--b\r\n\r\n\r\n--b--', /no Content-Disposition: form-data/],
    ['--b\r\nno header\r\n\r\n', /has no name/],
    [`${head}Content-Transfer-Encoding: base64\r\n\r\n`, /Content-Transfer-Encoding/],
    [`${head}X: ${'x'.repeat(9000)}`, /at most 8192 bytes/],
    [`${head}X: ${'x'.repeat(9000)}\r\n\r\n`, /at most 8192 bytes/],
    [`${head}\r\n\r\n`.repeat(101), /at most 100 parts/],
  ];
  for (const [text, message] of cases) t.throws(() => parse('b', [Buffer.from(text)]), message, text.slice(0, 60));
  for (const text of [
    '',
    '--b',
    '--b\r\n',
    head,
    `${head}\r\n`,
    `${head}\r\nx`,
    `${head}\r\nx\r\n--b`,
    `${head}\r\nx\r\n--b\r\n`,
  ]) {
    t.throws(() => parse('b', [Buffer.from(text)]), /not complete/, `cut off: ${JSON.stringify(text.slice(-20))}`);
  }
  t.end();
});

t.test('the boundary is read from Content-Type', (t) => {
  t.equal(boundaryOf('multipart/form-data; boundary=----WebKitFormBoundaryx'), '----WebKitFormBoundaryx');
  t.equal(boundaryOf('Multipart/Form-Data;charset=utf-8; Boundary="a b"'), 'a b');
  t.equal(boundaryOf('multipart/form-data; boundary=x; charset=utf-8'), 'x');
  for (const type of [
    '',
    'application/json',
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/mixed; boundary=x',
    `multipart/form-data; boundary=${'x'.repeat(71)}`,
  ]) {
    t.throws(() => boundaryOf(type), { code: 'invalid_content_type' }, type.slice(0, 60));
  }
  t.end();
});

t.test('file names are read in the forms that common clients write', (t) => {
  const filename = (disposition: string): string | null | undefined =>
    parse('b', [Buffer.from(`--b\r\nContent-Disposition: form-data; name="file"; ${disposition}\r\n\r\n\r\n--b--`)])[0]
      ?.filename;
  t.equal(filename('filename="plain.png"'), 'plain.png');
  t.equal(filename('filename=plain.png'), 'plain.png');
  t.equal(filename('filename="%22quoted%22.png"'), '"quoted".png');
  t.equal(filename('filename="C:\\pictures\\a.png"'), 'C:\\pictures\\a.png');
  t.equal(filename('filename="x; name=y.png"'), 'x; name=y.png');
  t.equal(filename('filename="fallback.png"; filename*=UTF-8\'\'%E2%82%AC.png'), '€.png');
  t.equal(filename('filename="fallback.png"; filename*=UTF-8\'\'%FF.png'), 'fallback.png');
  t.equal(filename('size=1'), null);
  t.end();
});
