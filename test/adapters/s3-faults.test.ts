import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { described, type Fault, readFaults, refusals, type SeenRequest, writeFaults } from '../doubles/s3/server.ts';
import { RETENTION_TERM_MS } from '../../src/ports/blobs.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { until } from '../helpers/cluster.ts';
import { noSmallDisk, smallDisk } from '../helpers/small-disk.ts';
import { IMPATIENT, nothingLeft, putBlob, readBlob, type S3Trial, s3Trial } from '../helpers/s3-blobs.ts';

const SMALL = randomBytes(100_000);

/** What a blob needs, and the requests that can fail meanwhile. */
const calls: readonly {
  readonly name: string;
  readonly isMet: (request: SeenRequest) => boolean;
  readonly faults: readonly Fault[];
  readonly run: (t: Test, trial: S3Trial) => Promise<void>;
}[] = [
  {
    name: 'PUT of a small blob',
    isMet: ({ method, query }) => method === 'PUT' && query.size === 0,
    faults: writeFaults,
    run: async (t, { blobs }) => {
      await putBlob(blobs, 'new', SMALL);
      t.ok(SMALL.equals(await readBlob(blobs, 'new')));
    },
  },
  {
    name: 'GET of a range',
    isMet: ({ method, key }) => method === 'GET' && key !== '',
    faults: readFaults,
    run: async (t, { blobs }) => void t.ok(SMALL.equals(await readBlob(blobs, 'kept', 30_000))),
  },
  {
    name: 'HEAD',
    isMet: ({ method }) => method === 'HEAD',
    faults: refusals,
    run: async (t, { blobs }) => void t.same(await blobs.stat('env', 'kept'), { size: SMALL.length }),
  },
  {
    name: 'DELETE',
    isMet: ({ method }) => method === 'DELETE',
    faults: [...refusals, { kind: 'cut after' }],
    run: async (t, { blobs }) => {
      await blobs.remove('env', 'kept');
      t.equal(await blobs.stat('env', 'kept'), undefined);
    },
  },
  {
    name: 'list',
    isMet: ({ method, key }) => method === 'GET' && key === '',
    faults: [...readFaults, { kind: 'error in 200' }],
    run: async (t, { blobs }) => {
      const names: string[] = [];
      for await (const name of blobs.list('env')) names.push(name);
      t.same(names, ['kept']);
      t.same(await blobs.environments(), ['env']);
    },
  },
];

for (const { name, isMet, faults: tried, run } of calls) {
  t.test(`${name}: a fault that is over soon is not noticed, and one that stays is storage_unavailable`, async (t) => {
    for (const fault of tried) {
      await t.test(described(fault), async (t) => {
        const patience = fault.kind === 'hang' ? IMPATIENT : {};
        const trial = await s3Trial(t, { bounds: { ...patience, maxAttempts: 4, retryMs: 60_000 } });
        const { server, blobs } = trial;
        await putBlob(blobs, 'kept', SMALL);
        server.fault = (request) => (isMet(request) ? fault : null);
        await t.rejects(run(t, trial), { code: 'storage_unavailable' }, 'it stays');
        const [kept, unsure] = [
          server.bucket.objects.get('test/files/env/kept'),
          server.bucket.objects.get('test/files/env/new'),
        ];
        if (fault.kind === 'cut after') t.ok(unsure === undefined || unsure.equals(SMALL), 'whole, or not there');
        else t.same([kept?.equals(SMALL), unsure], [true, undefined], 'nothing has changed');
        if (kept === undefined) await putBlob(blobs, 'kept', SMALL);
        let left = 1;
        server.fault = (request) => (isMet(request) && left-- > 0 ? fault : null);
        await run(t, trial);
        server.fault = () => null;
        await nothingLeft(t, trial);
      });
    }
  });
}

t.test('more calls than connections wait for each other', async (t) => {
  const trial = await s3Trial(t, { bounds: { maxConnections: 3 } });
  const { server, blobs } = trial;
  server.bucket.objects.set('test/files/env/kept', SMALL);
  const many = Array.from({ length: 60 }, () => blobs.stat('env', 'kept'));
  let most = 0;
  const count = setInterval(() => (most = Math.max(most, server.sockets.size)), 1);
  await Promise.all(many);
  clearInterval(count);
  t.ok(most <= 3, `${most} connections`);
  await nothingLeft(t, trial);
});

t.test('calls that wait for a store that hangs are refused in time', async (t) => {
  const trial = await s3Trial(t, { bounds: { ...IMPATIENT, maxConnections: 3, queueMs: 250, maxAttempts: 4 } });
  const { server, blobs } = trial;
  server.bucket.objects.set('test/files/env/kept', SMALL);
  server.fault = () => ({ kind: 'hang' });
  const late = await Promise.allSettled(Array.from({ length: 20 }, () => blobs.stat('env', 'kept')));
  t.ok(late.every((outcome) => outcome.status === 'rejected'));
  server.fault = () => null;
  t.same(await blobs.stat('env', 'kept'), { size: SMALL.length }, 'the connections are free again');
  await nothingLeft(t, trial);
});

t.test('a connection that the store has closed while it was idle is no failure', async (t) => {
  const { server, blobs } = await s3Trial(t, { bounds: { maxAttempts: 2 } });
  for (let n = 0; n < 5; n++) {
    t.equal(await blobs.stat('env', 'absent'), undefined);
    for (const socket of server.sockets) socket.destroy();
  }
});

t.test('a refusal is reported at once, by its code', async (t) => {
  const { server, blobs } = await s3Trial(t);
  server.fault = () => ({ kind: 'refuse', status: 403, code: 'AccessDenied' });
  const message = 'The object store refuses (AccessDenied): the change was not confirmed';
  await t.rejects(blobs.stat('env', 'a'), {
    code: 'storage_failed',
    message: message.replace('AccessDenied', 'HTTP 403'),
  });
  await t.rejects(blobs.open('env', 'a'), { code: 'storage_failed', message });
  await t.rejects(blobs.environments(), { code: 'storage_failed', message });
  await t.rejects(blobs.remove('env', 'a'), { code: 'storage_failed', message });
  await t.rejects(blobs.retain(), { code: 'storage_failed', message });
  await t.rejects(putBlob(blobs, 'a', SMALL), { code: 'storage_failed', message });
  t.equal(server.seen.length, 7, 'only HEAD was sent again, with keys loaded anew: its answer does not say why');
});

t.test('a store without space, or with a quota, is storage_full, and nothing becomes visible', async (t) => {
  const trial = await s3Trial(t);
  const { server, blobs } = trial;
  for (const [status, code] of [
    [507, 'InsufficientStorage'],
    [403, 'QuotaExceeded'],
  ] as const) {
    server.fault = ({ method }) => (method === 'PUT' ? { kind: 'refuse', status, code } : null);
    await t.rejects(putBlob(blobs, 'a', SMALL), { code: 'storage_full' });
    t.equal(server.bucket.objects.size, 0);
  }
  server.fault = () => null;
  await putBlob(blobs, 'a', SMALL);
  await nothingLeft(t, trial);
});

t.test('a disk that fills up while a blob is staged is storage_full', { skip: noSmallDisk }, async (t) => {
  const disk = smallDisk(t, 4);
  const { server, blobs } = await s3Trial(t, { staging: { folder: disk.path, minFreeBytes: 0 } });
  const [staged, other] = [await blobs.stage('env', 'a'), await blobs.stage('env', 'b')];
  disk.fill();
  await t.rejects(staged.write(Buffer.alloc(100_000)), { code: 'storage_full' });
  await t.rejects(staged.commit(), /a write or a commit of the blob has failed/);
  await staged.discard();
  disk.empty();
  await other.write(Buffer.from('whole'));
  await other.commit();
  t.same([...server.bucket.objects], [['test/files/env/b', Buffer.from('whole')]]);
});

t.test(
  'lists that lag neither end a lease early nor show one that has ended, and show blobs that are gone',
  async (t) => {
    const trial = await s3Trial(t);
    const { server, blobs } = trial;
    await putBlob(blobs, 'kept', SMALL);
    server.bucket.lag();
    let isThere = false;
    const creating = blobs.retain().finally(() => (isThere = true));
    await until(() => server.seen.filter((line) => line.startsWith('GET ?test/leases')).length >= 3);
    t.notOk(isThere, 'the lease is not there before lists have it');
    server.bucket.catchUp();
    const lease = await creating;
    t.equal(await blobs.isRetained(), true);
    server.bucket.lag();
    await lease.release();
    t.equal(await blobs.isRetained(), false);
    await blobs.remove('env', 'kept');
    await putBlob(blobs, 'new', SMALL);
    const names: string[] = [];
    for await (const name of blobs.list('env')) names.push(name);
    t.same(names, ['kept']);
    t.equal(await blobs.stat('env', 'kept'), undefined);
    await blobs.removeAll('env');
    t.same(await blobs.stat('env', 'new'), { size: SMALL.length }, 'left for a later sweep');
    server.bucket.catchUp();
    await blobs.removeAll('env');
    t.equal(server.bucket.objects.size, 0);
    await nothingLeft(t, trial);
  },
);

t.test('a renewal that took effect too late has lost the lease, and leaves none', async (t) => {
  const clock = new ManualClock(Date.now());
  const trial = await s3Trial(t, { clock });
  const { server, blobs } = trial;
  const lease = await blobs.retain();
  server.fault = ({ method }) => {
    if (method === 'PUT') clock.advance(RETENTION_TERM_MS + 1);
    return null;
  };
  await t.rejects(lease.renew(), { name: 'RetentionLostError' });
  t.equal(server.bucket.objects.size, 0);
  await nothingLeft(t, trial);
});
