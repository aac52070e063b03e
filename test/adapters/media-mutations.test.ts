import sharp, { type Sharp } from 'sharp';
import t from 'tap';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import { animation } from '../fixtures/media.ts';
import { Random } from '../fuzz/random.ts';
import { imageParts } from '../helpers/image-parts.ts';
import { mediaFile } from '../helpers/media-file.ts';

const media = new LocalMedia();
const SEED = Number(process.env['FUZZ_SEED'] ?? 36);
const ROUNDS = 2;

type Mutation = (image: Buffer, random: Random) => Buffer;

/** Bytes and parts of an image changed, moved, added and left out. */
const mutations: Readonly<Record<string, Mutation>> = {
  'bytes after it': (image, random) => spliced(image, image.length, 0, bytesOf(random)),
  'bytes before it': (image, random) => spliced(image, 0, 0, bytesOf(random)),
  truncated: (image, random) => image.subarray(0, 1 + random.below(image.length - 1)),
  'truncated at its end': (image, random) => image.subarray(0, image.length - 1 - random.below(12)),
  'one byte of its head changed': (image, random) => spliced(image, random.below(60), 1, bytesOf(random, 1)),
  'bytes changed': (image, random) => spliced(image, random.below(image.length), 3, bytesOf(random, 3)),
  'stray bytes': (image, random) => spliced(image, random.below(image.length), 0, bytesOf(random)),
  'a stray marker': (image, random) =>
    spliced(image, random.below(image.length), 0, Buffer.from([0xff, 0xd8 + random.below(8)])),
  'bytes left out': (image, random) => spliced(image, random.below(image.length), 1 + random.below(4)),
  'stray bytes between parts': inParts((parts, random) => parts.splice(random.below(parts.length), 0, bytesOf(random))),
  'a part left out': inParts((parts, random) => parts.splice(random.below(parts.length), 1)),
  'a part repeated': inParts((parts, random) => parts.splice(random.below(parts.length), 0, random.pick(parts))),
  'a part moved': inParts((parts, random) =>
    parts.splice(random.below(parts.length), 0, ...parts.splice(random.below(parts.length), 1)),
  ),
};

function spliced(image: Buffer, at: number, removed: number, inserted: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([image.subarray(0, at), inserted, image.subarray(at + removed)]);
}

function bytesOf(random: Random, count = 1 + random.below(4)): Buffer {
  return Buffer.from(Array.from({ length: count }, () => random.below(256)));
}

function inParts(change: (parts: Buffer[], random: Random) => void): Mutation {
  return (image, random) => {
    const parts = imageParts(image);
    change(parts, random);
    return Buffer.concat(parts);
  };
}

/** Images of every accepted type, with what decides how their decoders work. */
async function samples(): Promise<Record<string, Buffer>> {
  const noise = Buffer.from(Array.from({ length: 40 * 30 * 3 }, (_, i) => (i * 7919) % 251));
  const plain = sharp(noise, { raw: { width: 40, height: 30, channels: 3 } });
  const described = plain.clone().withMetadata({ icc: 'p3', orientation: 6 });
  const encoded: Record<string, Sharp> = {
    JPEG: plain.clone().jpeg({ chromaSubsampling: '4:4:4' }),
    'JPEG with EXIF and profile': described.clone().jpeg(),
    'grey JPEG': plain.clone().greyscale().jpeg(),
    'JPEG in CMYK': plain.clone().toColourspace('cmyk').jpeg(),
    'progressive JPEG': plain.clone().jpeg({ progressive: true }),
    PNG: described.clone().png(),
    'interlaced PNG': plain.clone().png({ progressive: true, palette: true }),
    GIF: (await animation(20, 16)).gif(),
    WebP: described.clone().webp(),
    'lossless WebP': (await animation(20, 16)).webp({ lossless: true }),
  };
  return Object.fromEntries(
    await Promise.all(Object.entries(encoded).map(async ([name, image]) => [name, await image.toBuffer()] as const)),
  );
}

/** Whether sharp decodes all of an image without an error. */
async function decodes(image: Buffer): Promise<boolean> {
  return sharp(image, { failOn: 'error' })
    .raw()
    .toBuffer()
    .then(
      () => true,
      () => false,
    );
}

t.test(`an image is accepted if the decoder decodes it, however it is mutated: seed ${SEED}`, async (t) => {
  const random = new Random(SEED);
  let decoded = 0;
  let refused = 0;
  for (const [name, image] of Object.entries(await samples())) {
    t.equal(await decodes(image), true, name);
    for (const [mutation, mutate] of Object.entries(mutations)) {
      for (let round = 0; round < ROUNDS; round++) {
        const mutated = mutate(image, random);
        const expected = await decodes(mutated);
        const accepted = (await media.image(mediaFile(mutated), () => Promise.resolve())) !== null;
        if (accepted !== expected)
          t.fail(`${name}, ${mutation}: ${accepted ? 'accepted' : 'refused'}: ${mutated.toString('base64')}`);
        if (expected) decoded += 1;
        else refused += 1;
      }
    }
  }
  t.comment(`${decoded} are decoded, ${refused} are not`);
  t.ok(decoded > 60 && refused > 60, 'some of each are compared');
});
