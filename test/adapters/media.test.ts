import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setImmediate as nextIteration } from 'node:timers/promises';
import sharp from 'sharp';
import t from 'tap';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import { HEAD_BYTES, type MediaFile } from '../../src/ports/media.ts';
import { emptyPng, mediaConformance } from '../conformance/media.ts';
import { fragmentedMp4, mp4, picture, wav, webm } from '../fixtures/media.ts';
import { mediaFile as file } from '../helpers/media-file.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const media = new LocalMedia();
const imageOf = (image: MediaFile) => media.image(image, () => Promise.resolve());

t.test('media of this machine keep the contract of Media', (t) => mediaConformance(t, media));

t.test('unusual but valid images are accepted', async (t) => {
  const cmyk = await picture(30, 20).toColourspace('cmyk').jpeg().toBuffer();
  const deep = await sharp(await picture(30, 20).png().toBuffer())
    .toColourspace('rgb16')
    .png()
    .toBuffer();
  const progressive = await picture(300, 200).jpeg({ progressive: true }).toBuffer();
  const trailed = Buffer.concat([await picture(30, 20).jpeg().toBuffer(), Buffer.alloc(600_000, 1)]);
  const dot = await picture(1, 1).webp().toBuffer();
  for (const [name, bytes] of Object.entries({ cmyk, deep, progressive, trailed, dot })) {
    t.ok(await imageOf(file(bytes)), name);
    const thumbnail = await media.thumbnail(bytes);
    t.match(
      thumbnail === null ? null : await sharp(thumbnail).metadata(),
      { format: 'jpeg', width: 200, height: 200, space: 'srgb', depth: 'uchar' },
      `a thumbnail of ${name}`,
    );
  }
});

t.test('files that are damaged, truncated, too large or no image are refused', async (t) => {
  const noise = Buffer.from(Array.from({ length: 90 * 60 * 3 }, (_, i) => (i * 7919) % 251));
  for (const type of ['jpeg', 'png', 'webp'] as const) {
    const bytes = await sharp(noise, { raw: { width: 90, height: 60, channels: 3 } })
      .toFormat(type)
      .toBuffer();
    t.ok(await imageOf(file(bytes)), `${type} complete`);
    t.equal(await imageOf(file(bytes.subarray(0, bytes.length * 0.6))), null, `${type} truncated`);
  }
  const withPreview = await picture(30, 20)
    .jpeg()
    .withMetadata({ exif: { IFD0: { Artist: 'x\xff\xd9x' } } })
    .toBuffer();
  t.equal(
    await imageOf(file(withPreview.subarray(0, withPreview.length - 2))),
    null,
    'an end marker before the scan does not count',
  );
  t.equal(await imageOf(file(emptyPng(20_000, 20_000))), null, 'a decompression bomb');
  t.equal(await media.thumbnail(emptyPng(20_000, 20_000)), null);
  t.equal(await imageOf(file(emptyPng(10, 10))), null, 'no pixels');
  t.equal(
    await imageOf(file(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'))),
    null,
    'SVG',
  );
  t.equal(await imageOf(file(await picture(9, 9).tiff().toBuffer())), null, 'TIFF');
  t.equal(await imageOf(file(Buffer.from('no picture'))), null);
});

t.test('the end marker of a JPEG is found at any place', async (t) => {
  const plain = await picture(300, 200).jpeg().toBuffer();
  const exif = Buffer.alloc(60_000, 0xd9);
  exif.fill(0xff, 100, 200);
  const segment = Buffer.concat([Buffer.from([0xff, 0xe1, exif.length >> 8, exif.length & 255]), exif.subarray(2)]);
  const long = Buffer.concat([plain.subarray(0, 2), segment, segment, Buffer.from([0xff]), plain.subarray(2)]);
  t.match(await imageOf(file(long)), { width: 300 }, 'its scan is not in the first bytes');
  t.match(
    await imageOf(file(Buffer.concat([long, Buffer.alloc(300_000, 3)]))),
    { width: 300 },
    'other bytes follow it',
  );
  t.equal(await imageOf(file(long.subarray(0, long.length - 2))), null, 'it is missing');
});

t.test('a JPEG is read at most twice, whatever it is filled with', async (t) => {
  let read = 0;
  const counted = (bytes: Buffer): MediaFile => {
    const whole = file(bytes);
    read = 0;
    return {
      ...whole,
      read: async (offset, length) => whole.read(offset, length).then((part) => ((read += part.length), part)),
    };
  };
  const plain = await picture(300, 200).jpeg().toBuffer();
  const fillBytes = Buffer.alloc(3_900_000, 0xff);
  const segments = Buffer.alloc(3_900_000, Buffer.from('ffe00002', 'hex'));
  for (const [name, filling] of Object.entries({ fillBytes, segments })) {
    const filled = Buffer.concat([plain.subarray(0, 2), filling, plain.subarray(2)]);
    t.ok(await imageOf(counted(Buffer.concat([filled, Buffer.from('more')]))), name);
    t.ok(read < 2.2 * filled.length, `${read} bytes`);
    t.equal(await imageOf(counted(filled.subarray(0, 3_000_000))), null, `${name}, without a scan`);
    t.ok(read < 2.2 * filled.length, `${read} bytes`);
  }
  const trailed = Buffer.concat([plain.subarray(0, -2), Buffer.alloc(9_900_000)]);
  t.ok(await imageOf(counted(Buffer.concat([trailed, Buffer.from('ffd900', 'hex')]))), 'its end marker is far away');
  t.ok(read < 1.1 * trailed.length, `${read} bytes`);
});

t.test('a GIF has the size that its header states, if its frames are not larger', async (t) => {
  const gif = await picture(30, 20).gif().toBuffer();
  const sizes: readonly (readonly [stated: [number, number], expected: [number, number]])[] = [
    [
      [640, 480],
      [640, 480],
    ],
    [
      [100, 50],
      [100, 50],
    ],
    [
      [10, 40],
      [30, 40],
    ],
    [
      [0, 0],
      [30, 20],
    ],
    [
      [60_000, 60_000],
      [30, 20],
    ],
  ];
  for (const [[statedWidth, statedHeight], [width, height]] of sizes) {
    const bytes = Buffer.from(gif);
    bytes.writeUInt16LE(statedWidth, 6);
    bytes.writeUInt16LE(statedHeight, 8);
    t.same(await imageOf(file(bytes)), { mimeType: 'image/gif', width, height }, `${statedWidth}x${statedHeight}`);
  }
});

t.test('images of different owners are decoded in turn, and small ones do not wait for large ones', async (t) => {
  const large = await picture(3_000, 3_000).png({ compressionLevel: 1 }).toBuffer();
  const middle = await picture(2_000, 1_500).png().toBuffer();
  const order: string[] = [];
  const look = async (name: string, image: MediaFile): Promise<void> => {
    t.ok(await imageOf(image));
    order.push(name);
  };
  await imageOf(file(middle));
  const flood = Array.from({ length: 9 }, () => look('large', file(large, 'ann')));
  await Promise.all([
    look('small', file(await picture(9, 9).png().toBuffer(), 'bob')),
    look('middle', file(middle, 'bob')),
  ]);
  t.ok(order.filter((name) => name === 'large').length <= 5, order.join());
  await Promise.all(flood);
});

t.test('durations of audio and video are read, also as browsers record them', async (t) => {
  t.equal(await media.duration(file(wav(1.5)), 'audio/wav'), 1500);
  t.equal(await media.duration(file(webm(2_500)), 'audio/webm'), 2500, 'a recording');
  t.equal(await media.duration(file(webm(2_500, { video: true })), 'video/webm'), 2500);
  t.equal(await media.duration(file(webm(25_000, { scale: 100_000 })), 'audio/webm'), 2500, 'in other units');
  t.equal(
    await media.duration(file(webm(4_200, { finished: true })), 'audio/webm'),
    4200,
    'with a duration in its header',
  );
  t.equal(
    await media.duration(file(webm(0).subarray(0, 60)), 'audio/webm'),
    undefined,
    'truncated before its first block',
  );
  for (const told of ['sample', 'fragment', 'track'] as const) {
    for (const timed of [true, false])
      t.equal(
        await media.duration(file(fragmentedMp4(3, { told, timed })), 'audio/mp4'),
        3000,
        `fragments, durations by ${told}`,
      );
  }
  t.equal(await media.duration(file(fragmentedMp4(2).subarray(0, -150)), 'video/mp4'), 2000, 'truncated fragments');
  t.equal(await media.duration(file(fragmentedMp4(0)), 'audio/mp4'), undefined, 'no fragments');
  t.equal(await media.duration(file(mp4('M4A')), 'audio/mp4'), undefined, 'nothing to play');
  t.equal(await media.duration(file(Buffer.alloc(10_000, 0xff)), 'audio/webm'), undefined, 'invalid bytes');
});

t.test('a file that only resembles audio is not read any further after the time limit', async (t) => {
  const resembling = file(Buffer.alloc(9_000_000, 0xff));
  let reads = 0;
  const read = (offset: number, length: number): Promise<Buffer> => {
    reads++;
    return resembling.read(offset, length);
  };
  t.equal(await media.duration({ ...resembling, read }, 'audio/mpeg'), undefined);
  const until = reads + 1;
  for (let i = 0; i < 1_000; i++) await nextIteration();
  t.ok(reads <= until, `${reads} reads`);
});

t.test(
  'an image whose header is not in the first bytes, or that does not fit into memory, is read completely',
  async (t) => {
    process.env['TMPDIR'] = tempFolder(t);
    const pixels = sharp(randomBytes(400 * 300 * 3), { raw: { width: 400, height: 300, channels: 3 } });
    for (const type of ['png', 'gif', 'webp'] as const) {
      const bytes = await pixels.clone().toFormat(type, { lossless: true }).toBuffer();
      t.ok(bytes.length > HEAD_BYTES, `${type}: ${bytes.length} bytes`);
      t.same(await imageOf(file(bytes)), { mimeType: `image/${type}`, width: 400, height: 300 });
    }
    const large = await sharp({ create: { width: 2_500, height: 2_500, channels: 3, background: '#123' } })
      .png({ compressionLevel: 0 })
      .toBuffer();
    t.ok(large.length > 16 * 1024 * 1024);
    t.same(await imageOf(file(large)), { mimeType: 'image/png', width: 2_500, height: 2_500 });
    t.equal(await imageOf(file(large.subarray(0, -1_000_000))), null, 'truncated');
    t.same(readdirSync(tmpdir()), [], 'no temporary file is left');
  },
);

t.test(
  'a JPEG with stray bytes, or markers that stand alone, before a segment is accepted as decoders accept it',
  async (t) => {
    const plain = await picture(30, 20).jpeg().toBuffer();
    const strays = ['00', '123456', 'ff00', 'ff01', 'ffd0', 'ffd7', 'ffff', '00ffd300'].map((hex) =>
      Buffer.from(hex, 'hex'),
    );
    let decoded = 0;
    for (const at of segmentsOf(plain)) {
      for (const stray of strays) {
        const bytes = Buffer.concat([plain.subarray(0, at), stray, plain.subarray(at)]);
        const decodes = await sharp(bytes, { failOn: 'error' })
          .raw()
          .toBuffer()
          .then(
            () => true,
            () => false,
          );
        const accepted = (await imageOf(file(bytes))) !== null;
        t.equal(accepted, decodes, `${stray.toString('hex')} at ${at}`);
        decoded += Number(decodes);
      }
    }
    t.ok(decoded > 0, 'decoders skip such bytes');
    const cut = Buffer.concat([plain.subarray(0, 2), Buffer.from('00', 'hex'), plain.subarray(2, -2)]);
    t.equal(await imageOf(file(cut)), null, 'one without an end is refused as before');
  },
);

/** The offsets of the segments of a JPEG after its first two bytes, up to the scan. */
function segmentsOf(jpeg: Buffer): number[] {
  const offsets: number[] = [];
  for (let at = 2; ; at += 2 + jpeg.readUInt16BE(at + 2)) {
    offsets.push(at);
    if (jpeg[at + 1] === 0xda) return offsets;
  }
}
