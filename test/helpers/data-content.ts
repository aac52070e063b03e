import { createHash } from 'node:crypto';
import { streamOf } from '../../src/domain/events/streams.ts';
import { ENVIRONMENTS } from '../../src/domain/records/partitions.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { Blobs } from '../../src/ports/blobs.ts';
import type { Store } from '../../src/ports/store.ts';

/** Everything in a store and its blobs, as a client can read it. */
export async function contentOf(store: Store, blobs: Blobs): Promise<object> {
  const records: string[][] = [];
  const streams: unknown[] = [];
  for (const partition of await store.partitions('')) {
    for (const { key, value } of await store.range(partition)) {
      records.push([partition, key, value]);
      if ((await store.get(partition, key)) !== value) throw new Error(`get and range differ in ${partition} ${key}`);
      if (partition !== ENVIRONMENTS) continue;
      const stream = streamOf(JSON.parse(value) as Environment);
      streams.push([await store.oldestSeq(stream), await store.lastSeq(stream), await store.events(stream, 0, 10_000)]);
    }
  }
  const files: string[] = [];
  for (const environmentId of (await blobs.environments()).sort()) {
    for await (const name of blobs.list(environmentId)) {
      const reader = await blobs.open(environmentId, name);
      files.push(
        `${environmentId} ${name} ${createHash('sha256')
          .update(await reader.read(0, 10_000_000))
          .digest('hex')}`,
      );
      await reader.close();
    }
  }
  return { epoch: store.epoch, records, streams, files: files.sort() };
}
