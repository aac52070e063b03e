import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { DataError } from '../../src/model/errors.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('one flipped bit in a commit of the log is detected, and nothing of the commit is served', async (t) => {
  const folder = tempFolder(t);
  const whole = join(folder, 'whole');
  const store = await openLmdbStore({ path: whole, minFreeBytes: 0 });
  for (const key of ['a', 'b', 'c']) {
    await store.transact(async (tx) => {
      tx.put('p', key, `"needle-${key}"`);
      tx.emit('env_1', (seq) => `{"seq":${seq},"n":"needle-${key}"}`);
    });
  }
  await store.close();
  const file = readFileSync(join(whole, 'log', 'data.mdb'));
  // Free pages have copies of it too.
  const texts: number[] = [];
  for (
    let at = file.indexOf('{"seq":2,"n":"needle-b"}');
    at >= 0;
    at = file.indexOf('{"seq":2,"n":"needle-b"}', at + 1)
  )
    texts.push(at);
  // The header of the WAL record, the length and checksum of the batch, its header, the event and the value.
  const [from, to] = [-43, 34];
  let detected = 0;
  for (let at = from; at < to; at++) {
    const path = join(folder, `flipped-${at}`);
    cpSync(whole, path, { recursive: true });
    const bytes = Buffer.from(file);
    for (const text of texts) bytes.writeUInt8(bytes.readUInt8(text + at) ^ (1 << Math.abs(at % 8)), text + at);
    writeFileSync(join(path, 'log', 'data.mdb'), bytes);
    try {
      const damaged = await openLmdbStore({ path, minFreeBytes: 0 });
      t.same(
        [(await damaged.range('p')).length, await damaged.get('p', 'b')],
        [3, '"needle-b"'],
        `byte ${at} belongs to no commit`,
      );
      await damaged.close();
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      t.match(error.message, /the commit at position 1 of its log is corrupted\..*collab restore/);
      detected++;
    }
  }
  t.ok(detected >= 34 + 16, `${detected} of ${to - from} flips were detected`);
});

t.test('one changed character in an event chunk is detected, although the events stay valid JSON', async (t) => {
  const path = join(tempFolder(t), 'store');
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  for (const stream of ['damaged', 'whole']) {
    for (let n = 1; n <= 3; n++)
      await store.transact(async (tx) => tx.emit(stream, (seq) => `{"seq":${seq},"n":"needle-${stream}"}`));
  }
  await store.checkpoint();
  await store.close();
  const file = join(path, 'data.mdb');
  const bytes = readFileSync(file);
  for (let at = bytes.indexOf('needle-damaged'); at >= 0; at = bytes.indexOf('needle-damaged', at + 1))
    bytes.write('N', at);
  writeFileSync(file, bytes);

  const opened = await openLmdbStore({ path, minFreeBytes: 0 });
  t.equal(await opened.lastSeq('damaged'), 3);
  await t.rejects(async () => opened.events('damaged', 0, 10), {
    name: 'DataError',
    message: /the events from damaged 0{15}1 on are corrupted \(checksum mismatch\).*collab restore/,
  });
  t.equal((await opened.events('whole', 0, 10)).length, 3);
  await opened.transact(async (tx) => tx.emit('damaged', (seq) => `{"seq":${seq}}`));
  t.same(await opened.events('damaged', 3, 10), [{ seq: 4, text: '{"seq":4}' }], 'later events are served');
  await opened.close();
});
