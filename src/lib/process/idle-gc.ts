import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_MS = 1_000;
/** Idle checks in a row before it collects: a pause between two bursts does not count as idle. */
const IDLE_CHECKS = 2;
const IDLE_UTILIZATION = 0.02;
/** Heap growth that is worth a pause of some ten milliseconds. */
const MIN_GROWTH_BYTES = 4 * 1024 * 1024;

/**
 * Collects garbage when a process becomes idle. V8 collects only when it allocates: after a burst, such as thousands of
 * connecting sockets, the garbage and the grown heap would otherwise stay resident while the process is idle.
 *
 * @returns a function that stops it. Does not keep the process alive.
 */
export function collectWhenIdle(): () => void {
  const collect = garbageCollector();
  let utilization = performance.eventLoopUtilization();
  let idleChecks = 0;
  let baseline = heapBytes();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    idleChecks = performance.eventLoopUtilization(now, utilization).utilization < IDLE_UTILIZATION ? idleChecks + 1 : 0;
    utilization = now;
    if (idleChecks < IDLE_CHECKS || heapBytes() - baseline < MIN_GROWTH_BYTES) return;
    collect();
    baseline = heapBytes();
    idleChecks = 0;
  }, CHECK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function heapBytes(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}

/** The `gc` function, which V8 exposes only with a flag. */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
