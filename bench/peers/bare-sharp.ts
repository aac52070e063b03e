/**
 * The reference for thumbnails: sharp alone, in one process, one image after another, with the same calls as Collab.
 * Reads the images listed in `--list`, one path per line, and writes a thumbnail of each to `--out`, without a flush.
 * Prints the milliseconds taken, after a few images for warm-up.
 */
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import sharp from 'sharp';

const { values } = parseArgs({ options: { list: { type: 'string' }, out: { type: 'string' } } });
const warmUps = 8;

sharp.concurrency(1);
sharp.cache(false);

async function makeThumbnail(path: string, name: string): Promise<void> {
  const thumbnail = await sharp(await readFile(path), {
    failOn: 'error',
    limitInputPixels: 50_000_000,
    sequentialRead: true,
  })
    .timeout({ seconds: 20 })
    .autoOrient()
    .resize(200, 200, { fit: 'cover' })
    .flatten({ background: '#ffffff' })
    .toColourspace('srgb')
    .jpeg({ quality: 80 })
    .toBuffer();
  await writeFile(join(values.out!, name), thumbnail);
}

const paths = readFileSync(values.list!, 'utf8').trim().split('\n');
for (const path of paths.slice(0, warmUps)) await makeThumbnail(path, 'warm-up');
const started = performance.now();
for (const [i, path] of paths.entries()) await makeThumbnail(path, String(i));
console.log(performance.now() - started);
