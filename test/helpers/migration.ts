import { join } from 'node:path';
import type { Test } from 'tap';
import { LocalBlobs } from '../../src/adapters/localfiles/blobs.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { newStreamId } from '../../src/domain/events/streams.ts';
import { startCollab } from './cli.ts';
import { contentOf } from './data-content.ts';

/** The folder of the store of a server in folder `dir`. */
export const storeOf = (dir: string): string => join(dir, 'data', 'store');
/** The files of a server in folder `dir`. */
export const blobsOf = (dir: string): LocalBlobs =>
  new LocalBlobs({ path: join(dir, 'data', 'files'), minFreeBytes: 0 });

/** Everything in a folder. */
export async function folderContent(dir: string): Promise<object> {
  const store = await openLmdbStore({ path: storeOf(dir), minFreeBytes: 0 });
  try {
    return await contentOf(store, blobsOf(dir));
  } finally {
    await store.close();
  }
}

/** Adds records, events and files to a folder, more than one page and batch of each. */
export async function fillFolder(dir: string, environmentId: string): Promise<void> {
  const store = await openLmdbStore({ path: storeOf(dir), minFreeBytes: 0 });
  const stream = newStreamId();
  for (let batch = 0; batch < 5; batch++)
    await store.transact(async (tx) => {
      for (let i = 0; i < 500; i++) tx.put(`p/${batch}`, `k${i}`, JSON.stringify({ batch, i, text: 'é'.repeat(40) }));
      for (let i = 0; i < 250; i++) tx.emit(stream, (seq) => JSON.stringify({ seq, batch }));
    });
  await store.close();
  const blobs = blobsOf(dir);
  for (let i = 0; i < 20; i++) {
    const staged = await blobs.stage(environmentId, `file_${i}`);
    await staged.write(Buffer.from(`content ${i}`.repeat(i * 1_000)));
    await staged.commit();
  }
}

/** A move that is killed again and again. */
export interface KilledMove {
  readonly from: string;
  readonly to: string;
  /** How often it is killed, if it does not end before. */
  readonly kills: number;
  /** Milliseconds after the start of its work, before which the last kill comes. */
  readonly withinMs: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the work has begun. */
  hasBegun(): boolean;
  /** Looks at what a kill has left. */
  afterKill?(): Promise<void>;
}

/** Runs `collab migrate` until it succeeds, and kills it later and later. Returns the number of kills. */
export async function moveUnderKills(t: Test, move: KilledMove): Promise<number> {
  let killed = 0;
  for (let n = 0; ; n++) {
    const args = ['migrate', '--to', move.to, '--dir', move.from, '--yes', '--json'];
    const running = startCollab(t, args, move.env === undefined ? {} : { env: move.env });
    const ended = new Promise<number | null>((resolve) => running.process.once('exit', resolve));
    if (n < move.kills) {
      while (running.process.exitCode === null && !move.hasBegun())
        await new Promise((resolve) => setTimeout(resolve, 1));
      await new Promise((resolve) => setTimeout(resolve, (n * move.withinMs) / move.kills));
      running.process.kill('SIGKILL');
    }
    const code = await ended;
    if (code === 0) return killed;
    if (code !== null) throw new Error(running.errors());
    killed++;
    await move.afterKill?.();
  }
}
