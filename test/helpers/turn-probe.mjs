// Preloaded into the processes of the server under test: measures each turn of the event loop of a web worker, and its
// memory on demand. Writes what it finds to <TURN_PROBE_FOLDER>/<pid>.json.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

const folder = process.env.TURN_PROBE_FOLDER;
const TICK_MS = 10;
const REPORT_MS = 100;
/** A turn of the event loop that takes longer, and all that time on the processor, is reported. */
const SLOW_MS = Number(process.env.TURN_PROBE_SLOW_MS);

let last = { at: 0, cpu: 0 };

// Threads of the worker load this, too: two of them would write one file.
if (folder !== undefined && process.env.COLLAB_ROLE === 'web' && isMainThread) {
  const slow = [];
  let memory = null;
  let asked = '';
  let written = '';
  last = { at: performance.now(), cpu: onCpuMs() };

  setInterval(() => {
    const now = { at: performance.now(), cpu: onCpuMs() };
    const tookMs = now.at - last.at - TICK_MS;
    const cpuMs = now.cpu - last.cpu;
    if (tookMs > SLOW_MS && cpuMs > SLOW_MS) slow.push({ tookMs: Math.round(tookMs), cpuMs: Math.round(cpuMs) });
    last = now;
  }, TICK_MS).unref();

  setInterval(() => {
    const wanted = readIfThere(join(folder, 'collect'));
    if (wanted !== asked) {
      asked = wanted;
      memory = { asked, bytes: settledBytes() };
    }
    const text = JSON.stringify({ slow, memory });
    if (text === written) return;
    written = text;
    const path = join(folder, `${process.pid}.json`);
    writeFileSync(`${path}.part`, text);
    renameSync(`${path}.part`, path);
  }, REPORT_MS).unref();
}

/** Milliseconds that the main thread has spent on a processor: a busy machine makes turns long, but not these. */
function onCpuMs() {
  const nanoseconds = readIfThere(`/proc/self/task/${process.pid}/schedstat`).split(' ')[0];
  if (nanoseconds !== '') return Number(nanoseconds) / 1e6;
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

/** Bytes of memory in use once garbage is collected. */
function settledBytes() {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  collect();
  collect();
  last = { at: performance.now(), cpu: onCpuMs() };
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
