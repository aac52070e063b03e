/**
 * The reference for uploads: uWebSockets.js writes the bytes of each body to its own file as they arrive, flushes the
 * file and answers 200. It does not inspect them, and has no names or users.
 *
 * The bytes are written synchronously in the event loop: they go to memory, which costs less than handing them to
 * another thread and also slows the client down. The flush, which waits for the disk, runs in another thread.
 */
import { closeSync, fsync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import uWS from 'uWebSockets.js';

const { values } = parseArgs({ options: { port: { type: 'string' }, data: { type: 'string' } } });
const app = uWS.App();
let files = 0;

app.post('/api/v1/upload', (res) => {
  const file = openSync(join(values.data!, String(files++)), 'wx');
  let gone = false;
  let flushing = false;
  res.onAborted(() => {
    gone = true;
    if (!flushing) closeSync(file);
  });
  res.onData((chunk, isLast) => {
    const bytes = new Uint8Array(chunk);
    for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from);
    if (!isLast) return;
    flushing = true;
    fsync(file, (error) => {
      closeSync(file);
      if (error !== null) throw error;
      if (!gone) res.cork(() => res.writeHeader('Content-Type', 'application/json').end('{}'));
    });
  });
});

app.get('/readyz', (res) => {
  res.end('ready');
});

app.listen('127.0.0.1', Number(values.port), (listening) => {
  if (!listening) throw new Error(`port ${String(values.port)} is taken`);
  console.log('ready');
});
