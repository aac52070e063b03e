import sharp from 'sharp';
import type { Test } from 'tap';
import type { ImageFacts, Media, MediaFile } from '../../src/ports/media.ts';
import { animation, mp4, picture, wav, webm } from '../fixtures/media.ts';
import { blackPng } from '../helpers/black-png.ts';
import { mediaFile as file } from '../helpers/media-file.ts';

const admitAll = (): Promise<void> => Promise.resolve();

/** A PNG with a header of the given size and no pixels, like a decompression bomb before it is opened. */
export function emptyPng(width: number, height: number): Buffer {
  const png = Buffer.from(
    '89504e470d0a1a0a0000000d49484452000000000000000008020000000000000000049454e44ae426082',
    'hex',
  );
  png.writeUInt32BE(width, 16);
  png.writeUInt32BE(height, 20);
  return png;
}

/** Asserts every sentence of ports/media.ts for an adapter. */
export async function mediaConformance(t: Test, media: Media): Promise<void> {
  const imageOf = (image: MediaFile): Promise<ImageFacts | null> => media.image(image, admitAll);

  await t.test(
    'sniff returns the MIME type of the content without parameters, and undefined if it is not known',
    async (t) => {
      for (const type of ['jpeg', 'png', 'gif', 'webp'] as const)
        t.equal(await media.sniff(file(await picture(30, 20).toFormat(type).toBuffer())), `image/${type}`);
      t.equal(await media.sniff(file(webm(100))), 'video/webm');
      t.equal(await media.sniff(file(mp4('M4A'))), 'audio/x-m4a');
      for (const bytes of [Buffer.from('nothing known'), Buffer.alloc(0), Buffer.alloc(1)])
        t.equal(await media.sniff(file(bytes)), undefined);
    },
  );

  await t.test('image returns type and size of an image as it is displayed', async (t) => {
    for (const type of ['jpeg', 'png', 'gif', 'webp'] as const) {
      t.same(
        await imageOf(file(await picture(30, 20).toFormat(type).toBuffer())),
        { mimeType: `image/${type}`, width: 30, height: 20 },
        type,
      );
    }
    t.same(
      await imageOf(file(await picture(30, 20).jpeg().withMetadata({ orientation: 6 }).toBuffer())),
      { mimeType: 'image/jpeg', width: 20, height: 30 },
      'turned',
    );
    t.same(
      await imageOf(file(await (await animation(8, 6)).gif().toBuffer())),
      { mimeType: 'image/gif', width: 8, height: 6 },
      'of an animation one frame',
    );
  });

  await t.test(
    'image and thumbnail return null for what cannot be decoded, image also for what is truncated',
    async (t) => {
      const noise = Buffer.from(Array.from({ length: 90 * 60 * 3 }, (_, i) => (i * 7919) % 251));
      for (const type of ['jpeg', 'png', 'webp'] as const) {
        const bytes = await sharp(noise, { raw: { width: 90, height: 60, channels: 3 } })
          .toFormat(type)
          .toBuffer();
        t.ok(await imageOf(file(bytes)), `${type} complete`);
        t.equal(await imageOf(file(bytes.subarray(0, bytes.length * 0.6))), null, `${type} truncated`);
      }
      for (const [name, bytes] of Object.entries({
        text: Buffer.from('no picture'),
        'no pixels': emptyPng(10, 10),
        empty: Buffer.alloc(0),
        'decompression bomb': emptyPng(20_000, 20_000),
      })) {
        t.equal(await imageOf(file(bytes)), null, name);
        t.equal(await media.thumbnail(bytes), null, `thumbnail: ${name}`);
      }
    },
  );

  await t.test('an image of 50 million pixels is accepted, one of more is not', async (t) => {
    t.same(await imageOf(file(blackPng(10_000, 5_000))), { mimeType: 'image/png', width: 10_000, height: 5_000 });
    t.equal(await imageOf(file(blackPng(10_001, 5_000))), null);
    const jpeg = await picture(30, 20).jpeg().toBuffer();
    // The size in its frame header; of a plain JPEG nothing else is decoded.
    const resized = (width: number): Buffer => {
      const bytes = Buffer.from(jpeg);
      const frame = bytes.indexOf(Buffer.from('ffc0', 'hex'));
      bytes.writeUInt16BE(5_000, frame + 5);
      bytes.writeUInt16BE(width, frame + 7);
      return bytes;
    };
    t.match(await imageOf(file(resized(10_000))), { mimeType: 'image/jpeg', width: 10_000, height: 5_000 });
    t.equal(await imageOf(file(resized(10_001))), null);
  });

  await t.test(
    'an image is decoded once its pixels are admitted; those of a JPEG that is not progressive are not asked for',
    async (t) => {
      const admitted: number[] = [];
      const admit = async (pixels: number): Promise<void> => void admitted.push(pixels);
      const [png, progressive, plain] = [
        picture(30, 20).png(),
        picture(50, 20).jpeg({ progressive: true }),
        picture(30, 20).jpeg(),
      ];
      for (const image of [png, progressive, plain]) t.ok(await media.image(file(await image.toBuffer()), admit));
      t.strictSame(admitted, [600, 1_000]);
      await t.rejects(
        media.image(file(await png.toBuffer()), () => Promise.reject(new Error('too many'))),
        { message: 'too many' },
      );
    },
  );

  await t.test(
    'a thumbnail is a JPEG of 200x200 pixels: upright, cropped to the middle, and white where the image is transparent',
    async (t) => {
      // The left half is red, the right half transparent; by its EXIF orientation the red is on top.
      const red = await sharp({ create: { width: 300, height: 300, channels: 4, background: '#f00' } })
        .png()
        .toBuffer();
      const halves = sharp({ create: { width: 600, height: 300, channels: 4, background: '#0000' } }).composite([
        { input: red, left: 0, top: 0 },
      ]);
      const thumbnail = await media.thumbnail(
        await sharp(await halves.png().toBuffer())
          .withMetadata({ orientation: 6 })
          .png()
          .toBuffer(),
      );
      t.match(await sharp(thumbnail ?? Buffer.alloc(0)).metadata(), { format: 'jpeg', width: 200, height: 200 });
      const { data, info } = await sharp(thumbnail ?? Buffer.alloc(0))
        .raw()
        .toBuffer({ resolveWithObject: true });
      t.match(info, { channels: 3 });
      const at = (x: number, y: number): number[] => [...data.subarray((y * 200 + x) * 3, (y * 200 + x) * 3 + 3)];
      const [r = 0, g = 255, b = 255] = at(100, 30);
      t.ok(r > 240 && g < 20 && b < 20, `red on top: ${r} ${g} ${b}`);
      t.ok(
        at(100, 170).every((value) => value > 240),
        `white below: ${at(100, 170).join(' ')}`,
      );
    },
  );

  await t.test('duration returns milliseconds, and undefined if they cannot be determined', async (t) => {
    t.equal(await media.duration(file(wav(1.5)), 'audio/wav'), 1500);
    t.equal(await media.duration(file(webm(2_500)), 'audio/webm'), 2500);
    t.equal(await media.duration(file(Buffer.alloc(10_000, 0xff)), 'audio/webm'), undefined, 'invalid bytes');
    t.equal(await media.duration(file(Buffer.alloc(0)), 'audio/wav'), undefined, 'an empty file');
    t.equal(
      await media.duration(file(Buffer.alloc(9_000_000, 0xff)), 'audio/mpeg'),
      undefined,
      'what only resembles audio',
    );
  });

  await t.test('images of different owners are decoded in turn', async (t) => {
    const large = await picture(4_000, 4_000).png({ compressionLevel: 1 }).toBuffer();
    const middle = await picture(2_000, 1_500).png().toBuffer();
    const order: string[] = [];
    const look = async (name: string, bytes: Buffer, owner: string): Promise<void> => {
      t.ok(await imageOf(file(bytes, owner)));
      order.push(name);
    };
    await imageOf(file(middle));
    const ann = Array.from({ length: 12 }, (_, i) => look(`ann ${i}`, large, 'ann'));
    await look('bob', middle, 'bob');
    t.ok(order.length <= 6, order.join());
    await Promise.all(ann);
  });
}
