import type { Test } from 'tap';
import { type Blobs, RETENTION_TERM_MS, type StagedBlob } from '../../src/ports/blobs.ts';

/** New, empty blobs that are opened twice, like in two processes. */
export interface OpenBlobs {
  readonly blobs: Blobs;
  readonly peer: Blobs;
  /** Advances the clock by which retention leases expire. */
  readonly advance: (ms: number) => void;
}

/** Blobs on a disk that fills up: after `fill`, a write and a flush of written bytes find no space. */
export interface FillingBlobs {
  readonly blobs: Blobs;
  readonly fill: () => void;
  readonly empty: () => void;
}

/** How an adapter opens blobs. */
export interface BlobsOpener {
  /** With `full` as on a full disk. */
  open(t: Test, full?: boolean): Promise<OpenBlobs>;
  /** Why there is no disk that fills up here; false if there is. */
  readonly noFilling: string | false;
  filling(t: Test): Promise<FillingBlobs>;
}

/** Asserts every sentence of ports/blobs.ts for an adapter. */
export async function blobsConformance(t: Test, { open, noFilling, filling }: BlobsOpener): Promise<void> {
  await t.test('nothing is staged on a full disk', async (t) => {
    const { blobs } = await open(t, true);
    await t.rejects(blobs.stage('env', 'a'), { code: 'storage_full' });
    t.same(await blobs.environments(), []);
  });

  await t.test(
    'a disk that fills up refuses write, flush and commit with storage_full, and nothing becomes visible',
    { skip: noFilling },
    async (t) => {
      const { blobs, fill, empty } = await filling(t);
      await put(blobs, 'env', 'kept', 'written before');
      const stage = (name: string): Promise<StagedBlob> => blobs.stage('env', name);
      const staged = [await stage('a'), await stage('b'), await stage('a')] as const;
      const [writing, flushing, committing] = staged;
      for (const blob of staged) await blob.write(Buffer.from('begin '));
      fill();
      await t.rejects(writing.write(Buffer.alloc(1_000_000)), { code: 'storage_full' }, 'write');
      await t.rejects(flushing.flush(), { code: 'storage_full' }, 'flush');
      await t.rejects(committing.commit(), { code: 'storage_full' }, 'commit');
      t.same(await namesOf(blobs, 'env'), ['kept']);
      for (const blob of staged) await blob.discard();
      empty();
      t.equal(await blobs.sweepStaged(0), 0, 'nothing is left');
      t.equal(await textOf(blobs, 'env', 'kept'), 'written before');
      await put(blobs, 'env', 'a', 'there is space again');
      t.equal(await textOf(blobs, 'env', 'a'), 'there is space again');
    },
  );

  await t.test('a blob is visible, complete, once it is committed', async (t) => {
    const { blobs, peer } = await open(t);
    const staged = await blobs.stage('env', 'a');
    await staged.write(Buffer.from('one '));
    await staged.flush();
    await staged.write(Buffer.from('two'));
    t.equal(await peer.stat('env', 'a'), undefined);
    t.same(await namesOf(peer, 'env'), []);
    await staged.commit();
    t.same(await peer.stat('env', 'a'), { size: 7 });
    t.equal(await textOf(peer, 'env', 'a'), 'one two');
    await staged.discard();
    t.same(await peer.stat('env', 'a'), { size: 7 }, 'discard has no effect after commit');
  });

  await t.test(
    'a name can be staged several times at once: each commit is whole, and a discard affects no other',
    async (t) => {
      const { blobs, peer } = await open(t);
      const [one, two, three] = [
        await blobs.stage('env', 'a'),
        await peer.stage('env', 'a'),
        await blobs.stage('env', 'a'),
      ] as const;
      await one.write(Buffer.from('of one'));
      await two.write(Buffer.from('of '));
      await three.write(Buffer.from('of three'));
      await one.commit();
      t.equal(await textOf(peer, 'env', 'a'), 'of one');
      await three.discard();
      await two.write(Buffer.from('two'));
      await two.commit();
      t.equal(await textOf(blobs, 'env', 'a'), 'of two');
      await one.discard();
      t.equal(await textOf(blobs, 'env', 'a'), 'of two');
      t.same(await namesOf(blobs, 'env'), ['a']);
      t.equal(await blobs.sweepStaged(0), 0, 'nothing is left');
    },
  );

  await t.test('reads return the requested bytes, fewer only at the end', async (t) => {
    const { blobs } = await open(t);
    await put(blobs, 'env', 'digits', '0123456789');
    const reader = await blobs.open('env', 'digits');
    t.equal((await reader.read(3, 4)).toString(), '3456');
    t.equal((await reader.read(8, 100)).toString(), '89');
    t.equal((await reader.read(10, 1)).length, 0);
    await reader.close();
    await t.rejects(blobs.open('env', 'absent'));
  });

  await t.test('what was written is readable before it is committed, by its writer', async (t) => {
    const { blobs } = await open(t);
    const staged = await blobs.stage('env', 'digits');
    await staged.write(Buffer.from('01234'));
    await staged.write(Buffer.from('56789'));
    t.equal((await staged.read(3, 4)).toString(), '3456');
    await staged.flush();
    t.equal((await staged.read(8, 100)).toString(), '89');
    t.equal((await staged.read(10, 1)).length, 0);
    await staged.commit();
    t.equal(await textOf(blobs, 'env', 'digits'), '0123456789');
  });

  await t.test('an open blob stays readable after it is removed, by itself or with its environment', async (t) => {
    const { blobs, peer } = await open(t);
    for (const remove of [() => peer.remove('env', 'a'), () => peer.removeAll('env'), () => blobs.removeAll('env')]) {
      await put(blobs, 'env', 'a', 'still here');
      const reader = await blobs.open('env', 'a');
      await remove();
      t.equal(await blobs.stat('env', 'a'), undefined);
      await put(peer, 'env', 'a', 'another one');
      t.equal((await reader.read(0, 100)).toString(), 'still here');
      await reader.close();
      await peer.remove('env', 'a');
    }
  });

  await t.test('a discarded blob leaves nothing, and discarding again has no effect', async (t) => {
    const { blobs } = await open(t);
    const staged = await blobs.stage('env', 'a');
    await staged.write(Buffer.from('x'));
    await staged.discard();
    await staged.discard();
    t.same(await namesOf(blobs, 'env'), []);
    t.equal(await blobs.sweepStaged(0), 0, 'nothing is left');
  });

  await t.test('a removed blob is gone, and removing it again has no effect', async (t) => {
    const { blobs, peer } = await open(t);
    await put(blobs, 'env', 'a', 'x');
    await put(blobs, 'env', 'ab', 'y');
    await peer.remove('env', 'a');
    await peer.remove('env', 'a');
    await peer.remove('other', 'a');
    t.equal(await blobs.stat('env', 'a'), undefined);
    t.same(await namesOf(blobs, 'env'), ['ab']);
    await put(blobs, 'env', 'a', 'again');
    t.equal(await textOf(peer, 'env', 'a'), 'again', 'the name is free again');
  });

  await t.test('environments are separate', async (t) => {
    const { blobs, peer } = await open(t);
    t.same(await blobs.environments(), []);
    for (const name of ['a', 'file_0000000000one', 'file_0000000000two', 'file_1111111111one'])
      await put(blobs, 'one', name, name);
    await put(blobs, 'two', 'a', 'of two');
    t.same(await namesOf(peer, 'one'), ['a', 'file_0000000000one', 'file_0000000000two', 'file_1111111111one']);
    t.same((await peer.environments()).sort(), ['one', 'two']);
    await peer.removeAll('one');
    await peer.removeAll('never');
    t.same(await namesOf(blobs, 'one'), []);
    t.equal(await textOf(blobs, 'two', 'a'), 'of two');
  });

  await t.test('an environment is removed while another process commits blobs to it, and neither fails', async (t) => {
    const { blobs, peer } = await open(t);
    let isRemoving = true;
    const commits = (async () => {
      for (let n = 0; isRemoving; n++) await put(peer, 'env', `file_${n % 7}_${n}`, 'x');
    })();
    for (let n = 0; n < 60; n++) await blobs.removeAll('env');
    isRemoving = false;
    await commits;
    await blobs.removeAll('env');
    t.same(await namesOf(peer, 'env'), []);
  });

  await t.test('blobs are retained, for all processes, until every lease is released', async (t) => {
    const { blobs, peer } = await open(t);
    t.equal(await blobs.isRetained(), false);
    const [one, two] = [await blobs.retain(), await peer.retain()];
    for (const view of [blobs, peer]) t.equal(await view.isRetained(), true);
    t.same(await blobs.environments(), [], 'a lease is not listed among the blobs');
    await put(blobs, 'env', 'a', 'x');
    await blobs.remove('env', 'a');
    t.equal(await blobs.stat('env', 'a'), undefined, 'callers have to check for leases');
    await one.release();
    await one.release();
    t.equal(await blobs.isRetained(), true);
    await two.release();
    for (const view of [blobs, peer]) t.equal(await view.isRetained(), false);
  });

  await t.test('a lease that is renewed lasts', async (t) => {
    const { blobs, peer, advance } = await open(t);
    const lease = await blobs.retain();
    for (let n = 0; n < 4; n++) {
      for (const view of [blobs, peer]) t.equal(await view.isRetained(), true);
      advance(RETENTION_TERM_MS * 0.6);
      await lease.renew();
    }
    await lease.release();
    t.equal(await peer.isRetained(), false);
  });

  await t.test('a lease that is not renewed for the term ends, and its holder is told', async (t) => {
    const { blobs, peer, advance } = await open(t);
    const [late, renewed] = [await blobs.retain(), await blobs.retain()];
    t.equal(await peer.isRetained(), true);
    advance(RETENTION_TERM_MS);
    t.equal(await peer.isRetained(), true);
    await renewed.renew();
    advance(1);
    t.equal(await peer.isRetained(), true, 'the other one');
    await t.rejects(late.renew(), { name: 'RetentionLostError' });
    await renewed.renew();
    await renewed.release();
    for (const view of [blobs, peer]) t.equal(await view.isRetained(), false);
    await late.release();
    await t.rejects(renewed.renew(), { name: 'RetentionLostError' });
  });

  await t.test('staged blobs are swept when nothing has been written to them for the given time', async (t) => {
    const { blobs, peer } = await open(t);
    const left = await blobs.stage('env', 'a');
    await left.write(Buffer.from('x'));
    t.equal(await peer.sweepStaged(60_000), 0);
    t.equal(await peer.sweepStaged(0, true), 1, 'only counted');
    t.equal(await peer.sweepStaged(0), 1);
    await t.rejects(left.commit());
    await left.discard();
    t.equal(await blobs.stat('env', 'a'), undefined);
  });

  await t.test('many concurrent commits succeed', async (t) => {
    const { blobs, peer } = await open(t);
    const names = Array.from({ length: 40 }, (_, i) => `file_${String(i % 4).repeat(10)}${i}`);
    await Promise.all(names.map((name, i) => put(i % 2 === 0 ? blobs : peer, 'env', name, name)));
    t.same(await namesOf(peer, 'env'), [...names].sort());
  });

  await t.test('names that the port does not allow are refused', async (t) => {
    const { blobs } = await open(t);
    for (const name of ['', '.', '..', '.hidden', 'a/b', '../a', 'a b', 'ä', 'x'.repeat(129), 'a\0']) {
      const what = JSON.stringify(name);
      for (const [environmentId, blob] of [
        ['env', name],
        [name, 'a'],
      ] as const) {
        // Absent blobs are no error of stat and remove, and open rejects with another one than for an absent blob.
        await t.rejects(blobs.stat(environmentId, blob), /invalid/, `stat: ${what}`);
        await t.rejects(blobs.open(environmentId, blob), /invalid/, `open: ${what}`);
        await t.rejects(blobs.remove(environmentId, blob), /invalid/, `remove: ${what}`);
        await t.rejects(blobs.stage(environmentId, blob), /invalid/, `stage: ${what}`);
      }
      await t.rejects(namesOf(blobs, name), /invalid/, `list: ${what}`);
      await t.rejects(blobs.removeAll(name), /invalid/, `removeAll: ${what}`);
    }
    t.same(await blobs.environments(), []);
    t.equal(await blobs.sweepStaged(0), 0);
    await put(blobs, 'env', 'x'.repeat(128), 'fits');
    t.equal(await textOf(blobs, 'env', 'x'.repeat(128)), 'fits');
  });
}

async function put(blobs: Blobs, environmentId: string, name: string, text: string): Promise<void> {
  const staged = await blobs.stage(environmentId, name);
  await staged.write(Buffer.from(text));
  await staged.commit();
}

async function textOf(blobs: Blobs, environmentId: string, name: string): Promise<string> {
  const reader = await blobs.open(environmentId, name);
  const bytes = await reader.read(0, 1_000_000);
  await reader.close();
  return bytes.toString();
}

async function namesOf(blobs: Blobs, environmentId: string): Promise<string[]> {
  const names: string[] = [];
  for await (const name of blobs.list(environmentId)) names.push(name);
  return names.sort();
}
