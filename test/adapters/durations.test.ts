import t from 'tap';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import { contradicts } from '../../src/model/attachment.ts';
import { durationCases, durationFile } from '../fixtures/durations.ts';
import { mediaFile } from '../helpers/media-file.ts';

const media = new LocalMedia();

/** A chunk of a WAV file, of an even size. */
function chunk(type: string, content: Buffer, size = content.length): Buffer {
  const head = Buffer.alloc(8);
  head.write(type, 0, 'latin1');
  head.writeUInt32LE(size, 4);
  return Buffer.concat([head, content]);
}

/** Returns the offset of the first Ogg page at or after `from`. */
const pageOf = (bytes: Buffer, from: number): number => bytes.indexOf('OggS', from);

t.test('durations equal those of ffprobe, for every accepted type', async (t) => {
  for (const { name, mimeType, ms, withinMs } of durationCases) {
    const file = mediaFile(durationFile(name).bytes);
    const duration = await media.duration(file, mimeType);
    t.ok(duration !== undefined && Math.abs(duration - ms) <= withinMs, `${name}: ${duration}, by ffprobe ${ms}`);
    const shown = await media.sniff(file);
    t.notOk(shown !== undefined && contradicts(shown, mimeType), `${name} is accepted as ${mimeType}: ${shown}`);
  }
});

t.test('a truncated WAV file has the duration of its content, and invalid ones have none', async (t) => {
  const { bytes } = durationFile('s16.wav');
  t.equal(await media.duration(mediaFile(bytes.subarray(0, -4_000)), 'audio/wav'), 450);
  const riff = Buffer.from('RIFF\xff\xff\xff\xffWAVE', 'latin1');
  const format = Buffer.from('01000100401f0000401f000001000800', 'hex');
  const listed = Buffer.concat([
    riff,
    chunk('LIST', Buffer.alloc(300_001)),
    Buffer.alloc(1),
    chunk('fmt ', format),
    chunk('data', Buffer.alloc(4_000)),
  ]);
  t.equal(await media.duration(mediaFile(listed), 'audio/wav'), 500, 'after a long chunk of an odd size');
  for (const [name, parts] of Object.entries({
    'no data': [chunk('fmt ', format)],
    'no format': [chunk('data', Buffer.alloc(4_000))],
    'no rate': [chunk('fmt ', Buffer.alloc(16)), chunk('data', Buffer.alloc(4_000))],
    nothing: [],
  })) {
    t.equal(await media.duration(mediaFile(Buffer.concat([riff, ...parts])), 'audio/wav'), undefined, name);
  }
});

t.test('a truncated Ogg file has the duration up to its last complete page, and invalid ones have none', async (t) => {
  const { bytes } = durationFile('vorbis.ogg');
  const half = await media.duration(mediaFile(bytes.subarray(0, bytes.lastIndexOf('OggS') + 20)), 'audio/ogg');
  t.ok(half !== undefined && half > 0 && half < 2_500, `${half}`);
  const headers = bytes.subarray(0, pageOf(bytes, pageOf(bytes, 4) + 4));
  t.equal(await media.duration(mediaFile(headers), 'audio/ogg'), undefined, 'only headers');
  t.equal(
    await media.duration(mediaFile(Buffer.concat([headers, Buffer.alloc(9_000_000, 'OggS')])), 'audio/ogg'),
    undefined,
    'no valid pages',
  );
  t.equal(await media.duration(mediaFile(bytes.subarray(1)), 'audio/ogg'), undefined, 'no page at its start');
  t.equal(await media.duration(mediaFile(Buffer.alloc(0)), 'audio/ogg'), undefined, 'empty');
  const trailed = Buffer.concat([bytes, Buffer.alloc(300_000)]);
  t.equal(await media.duration(mediaFile(trailed), 'audio/ogg'), 2_500, 'other bytes follow');
});

t.test('an MP4 file without a duration in its header has that of its longest track', async (t) => {
  const { bytes } = durationFile('silent.mp4');
  const silenced = Buffer.from(bytes);
  silenced.writeUInt32BE(0xffffffff, bytes.indexOf('mvhd') + 4 + 16);
  t.equal(await media.duration(mediaFile(silenced), 'video/mp4'), 2_000);
});

t.test('a WAV file without a byte rate has the duration of its samples', async (t) => {
  const { bytes } = durationFile('s16.wav');
  const expected = await media.duration(mediaFile(bytes), 'audio/wav');
  const without = Buffer.from(bytes);
  without.writeUInt32LE(0, bytes.indexOf('fmt ') + 16);
  t.equal(await media.duration(mediaFile(without), 'audio/wav'), expected);
});

t.test('an MP3 file that does not begin with a frame has the duration of its frames', async (t) => {
  for (const name of ['cbr.mp3', 'vbr.mp3']) {
    const { bytes } = durationFile(name);
    const expected = await media.duration(mediaFile(bytes), 'audio/mpeg');
    t.type(expected, 'number');
    for (const before of [Buffer.alloc(300), Buffer.from('not a frame '.repeat(40))]) {
      t.equal(
        await media.duration(mediaFile(Buffer.concat([before, bytes])), 'audio/mpeg'),
        expected,
        `${name} after ${before.length} bytes`,
      );
    }
  }
});

t.test('joined MP3 files have the duration of all their frames, whatever the first part says of itself', async (t) => {
  const parts = ['cbr-xing.mp3', 'vbr-xing.mp3', 'tagged.mp3', 'mpeg2.mp3', 'vbr.mp3'].map(
    (name) => durationFile(name).bytes,
  );
  let sum = 0;
  for (const part of parts) sum += (await media.duration(mediaFile(part), 'audio/mpeg')) ?? 0;
  t.equal(await media.duration(mediaFile(Buffer.concat(parts)), 'audio/mpeg'), sum);
  const apart = parts.flatMap((part) => [part, Buffer.from('\xff\xfb something else', 'latin1')]);
  t.equal(await media.duration(mediaFile(Buffer.concat(apart)), 'audio/mpeg'), sum, 'with other bytes between them');
});

t.test('an Opus file that is cut inside a page has the duration up to the page before', async (t) => {
  const { bytes } = durationFile('opus.ogg');
  const last = bytes.lastIndexOf('OggS');
  const whole = await media.duration(mediaFile(bytes.subarray(0, last)), 'audio/ogg');
  t.ok(whole !== undefined && whole < 2_400, `${whole}`);
  for (const end of [last + 27, last + 100, bytes.length - 1])
    t.equal(
      await media.duration(mediaFile(bytes.subarray(0, end)), 'audio/ogg'),
      whole,
      `${end} of ${bytes.length} bytes`,
    );
});
