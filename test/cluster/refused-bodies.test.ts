import { readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { startCluster } from '../helpers/cluster.ts';
import { testCore } from '../helpers/core.ts';
import { RawConnection } from '../helpers/raw-http.ts';

const MEGABYTE = 1024 * 1024;
const body = Buffer.alloc(30 * MEGABYTE, 'x');
/**
 * On Node 26, a socket reads each piece into a new buffer and collects them late: 110 to 160 MB, for 24, 48 and 96
 * bodies alike.
 */
const collectsLate = testCore === 'node' && Number.parseInt(process.versions.node, 10) >= 26;
/** Of the 720 MB that are sent. */
const bound = (collectsLate ? 240 : 80) * MEGABYTE;

/** The peak memory of a process in bytes since 5 was written to its clear_refs. */
function peakMemory(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

const skip = process.platform === 'linux' ? false : 'the peak is read from /proc';

t.test('bodies of requests without a credential take no memory', { skip }, async (t) => {
  const cluster = await startCluster({ workers: 1 });
  t.teardown(() => cluster.kill());
  const [worker = 0] = cluster.pids('web');
  const refuse = async (request: string, length: string): Promise<void> => {
    const connection = await RawConnection.open(cluster.port);
    connection.pause();
    await connection.send(
      `${request} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n${length}\r\n\r\n`,
    );
    await connection.send(body);
    connection.resume();
    t.equal((await connection.answer()).status, 401, request);
    connection.destroy();
  };
  writeFileSync(`/proc/${worker}/clear_refs`, '5');
  const before = peakMemory(worker);
  const requests = ['POST /api/v1/upload', 'PUT /api/v1/rooms/r1/p2p/state', 'POST /api/v1/rooms/r1/threads'];
  await Promise.all(
    requests.flatMap((request) => Array.from({ length: 8 }, () => refuse(request, `Content-Length: ${body.length}`))),
  );
  const grown = peakMemory(worker) - before;
  t.ok(grown < bound, `24 bodies of 30 MB: ${Math.round(grown / MEGABYTE)} MiB more`);
});
