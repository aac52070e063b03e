import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LocalBlobs } from '../../src/adapters/localfiles/blobs.ts';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import type { UserActor } from '../../src/domain/access/actor.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { beginUpload } from '../../src/domain/files/uploads.ts';
import { putUser } from '../../src/domain/users/users.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { wav } from '../fixtures/media.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { contentOf } from '../helpers/data-content.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { backendOf } from '../helpers/backend-of.ts';

/** How many bits are flipped, each in a copy of its own; set FLIPS for more, and FLIP_SEED for others. */
const FLIPS = Number(process.env['FLIPS'] ?? 30 * CRASH_FACTOR);
const SEED = process.env['FLIP_SEED'] ?? 'one';
/** A round that takes longer hangs, which counts as no answer. */
const HANG_MS = 10_000;

/**
 * Writes a data folder with records, events and a file, half of them in the base table and half in the log, and what is
 * in it.
 */
async function writeData(path: string): Promise<void> {
  const store = await openLmdbStore({ path: join(path, 'store'), minFreeBytes: 0 });
  const blobs = new LocalBlobs({ path: join(path, 'files'), minFreeBytes: 0 });
  const ctx = { store, blobs, shared: new MemoryShared(), clock: systemClock, media: new LocalMedia() };
  const environment = await createEnvironment(ctx, { slug: 'dev' });
  const backend = backendOf(environment);
  const ann: UserActor = {
    kind: 'user',
    environment,
    userId: 'ann',
    role: 'member',
    rooms: null,
    confinedKeyId: null,
    via: 'ws',
  };
  await putUser(ctx, backend, 'ann', { name: 'Ann' });
  for (let i = 0; i < 120; i++) {
    if (i === 40 || i === 80) await store.checkpoint();
    await createThread(ctx, ann, `room-${i % 5}`, { body: `needle ${i}` }, null);
  }
  const upload = await beginUpload(
    ctx,
    ann,
    { uploads: { megapixelsPerMinute: 0 } },
    { filename: 'a.wav', contentType: 'audio/wav', isDeclared: true, minBytes: 0 },
  );
  await upload.write(wav(0.1));
  await upload.finish();
  await store.close();
  const again = await openLmdbStore({ path: join(path, 'store'), minFreeBytes: 0 });
  writeFileSync(join(path, 'truth.json'), JSON.stringify(await contentOf(again, blobs)));
  await again.close();
}

t.test(
  'after one flipped bit anywhere, every read is right or fails, or doctor --deep reports the damage',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const folder = tempFolder(t);
    await writeData(folder);
    const results = new Map<string, number>();
    const silent: string[] = [];
    const count = (result: string): void => void results.set(result, (results.get(result) ?? 0) + 1);
    for (let round = 0; round < FLIPS;) {
      const reader = startFixture('flip-reader', folder, String(round), String(FLIPS), SEED);
      t.teardown(() => killLines(reader));
      let seen = 0;
      let hung = false;
      const ended = (): boolean => reader.child.exitCode !== null || reader.child.signalCode !== null;
      while (!ended() && !hung) {
        await until(() => ended() || reader.lines.length > seen, HANG_MS).catch(() => (hung = true));
        seen = reader.lines.length;
      }
      await killLines(reader);
      for (const line of reader.lines) {
        const [, n = '', result = ''] = /^(\d+) (right|error|reported|silent)/.exec(line) ?? [];
        if (result === '') continue;
        count(result);
        if (result === 'silent') silent.push(reader.lines.find((other) => other.startsWith(`${n} flipped`)) ?? n);
        round = Number(n) + 1;
      }
      if (round >= FLIPS) break;
      // The process died or hung in this round.
      count(hung ? 'hung' : 'died');
      const [, left = ''] =
        /^\d+ begins in (.*)$/.exec(reader.lines.find((line) => line.startsWith(`${round} begins`)) ?? '') ?? [];
      if (left !== '') rmSync(left, { recursive: true, force: true });
      t.comment(`${hung ? 'hung' : 'died'}: ${reader.lines.find((line) => line.startsWith(`${round} flipped`))}`);
      round++;
    }
    t.comment(JSON.stringify(Object.fromEntries(results)));
    t.same(silent, [], 'no flip gives other data silently');
    t.ok((results.get('error') ?? 0) + (results.get('reported') ?? 0) > FLIPS / 20, 'some flips hit data');
  },
);
