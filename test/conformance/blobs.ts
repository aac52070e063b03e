import type { Test } from 'tap';
import type { Blobs } from '../../src/ports/blobs.ts';

/**
 * Asserts every sentence of ports/blobs.ts for an adapter. `open` opens new, empty blobs twice, like two processes; with
 * `full` as on a full disk.
 */
export async function blobsConformance(t: Test, open: (t: Test, full?: boolean) => Promise<{ blobs: Blobs; peer: Blobs }>): Promise<void> {
  await t.test('nothing is staged on a full disk', async (t) => {
    const { blobs } = await open(t, true);
    await t.rejects(blobs.stage(), { code: 'storage_full' });
    t.same(await blobs.environments(), []);
  });

  await t.test('a blob is visible, complete, once it is committed', async (t) => {
    const { blobs, peer } = await open(t);
    const staged = await blobs.stage();
    await staged.write(Buffer.from('one '));
    await staged.flush();
    await staged.write(Buffer.from('two'));
    t.equal(await peer.stat('env', 'a'), undefined);
    t.same(await namesOf(peer, 'env'), []);
    await staged.commit('env', 'a');
    t.same(await peer.stat('env', 'a'), { size: 7 });
    t.equal(await textOf(peer, 'env', 'a'), 'one two');
    await staged.discard();
    t.same(await peer.stat('env', 'a'), { size: 7 }, 'discard has no effect after commit');
  });

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
    const staged = await blobs.stage();
    await staged.write(Buffer.from('01234'));
    await staged.write(Buffer.from('56789'));
    t.equal((await staged.read(3, 4)).toString(), '3456');
    await staged.flush();
    t.equal((await staged.read(8, 100)).toString(), '89');
    t.equal((await staged.read(10, 1)).length, 0);
    await staged.commit('env', 'digits');
    t.equal(await textOf(blobs, 'env', 'digits'), '0123456789');
  });

  await t.test('an open blob stays readable after it is removed', async (t) => {
    const { blobs, peer } = await open(t);
    await put(blobs, 'env', 'a', 'still here');
    const reader = await blobs.open('env', 'a');
    await peer.remove('env', 'a');
    t.equal((await reader.read(0, 100)).toString(), 'still here');
    await reader.close();
  });

  await t.test('a discarded blob leaves nothing, and discarding again has no effect', async (t) => {
    const { blobs } = await open(t);
    const staged = await blobs.stage();
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
    for (const name of ['a', 'file_0000000000one', 'file_0000000000two', 'file_1111111111one']) await put(blobs, 'one', name, name);
    await put(blobs, 'two', 'a', 'of two');
    t.same(await namesOf(peer, 'one'), ['a', 'file_0000000000one', 'file_0000000000two', 'file_1111111111one']);
    t.same((await peer.environments()).sort(), ['one', 'two']);
    await peer.removeAll('one');
    await peer.removeAll('never');
    t.same(await namesOf(blobs, 'one'), []);
    t.equal(await textOf(blobs, 'two', 'a'), 'of two');
  });

  await t.test('blobs are held, for all processes, until every hold is released', async (t) => {
    const { blobs, peer } = await open(t);
    t.equal(await blobs.isHeld(), false);
    const [one, two] = [await blobs.hold(), await peer.hold()];
    for (const view of [blobs, peer]) t.equal(await view.isHeld(), true);
    t.same(await blobs.environments(), [], 'a hold is not listed among the blobs');
    await put(blobs, 'env', 'a', 'x');
    await blobs.remove('env', 'a');
    t.equal(await blobs.stat('env', 'a'), undefined, 'callers have to check for holds');
    await one.release();
    await one.release();
    t.equal(await blobs.isHeld(), true);
    await two.release();
    for (const view of [blobs, peer]) t.equal(await view.isHeld(), false);
  });

  await t.test('staged blobs are swept when nothing has been written to them for the given time', async (t) => {
    const { blobs, peer } = await open(t);
    const left = await blobs.stage();
    await left.write(Buffer.from('x'));
    t.equal(await peer.sweepStaged(60_000), 0);
    t.equal(await peer.sweepStaged(0, true), 1, 'only counted');
    t.equal(await peer.sweepStaged(0), 1);
    await t.rejects(left.commit('env', 'a'));
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
      await t.rejects(blobs.stat('env', name), `${JSON.stringify(name)} as a name`);
      await t.rejects(blobs.removeAll(name), `${JSON.stringify(name)} as an environment`);
    }
    await put(blobs, 'env', 'x'.repeat(128), 'fits');
    t.equal(await textOf(blobs, 'env', 'x'.repeat(128)), 'fits');
  });
}

async function put(blobs: Blobs, environmentId: string, name: string, text: string): Promise<void> {
  const staged = await blobs.stage();
  await staged.write(Buffer.from(text));
  await staged.commit(environmentId, name);
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
