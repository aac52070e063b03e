import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOK_MS = 1_000;
/** Quiet looks in a row before it acts: a pause between two bursts is not yet rest. */
const QUIET_LOOKS = 2;
const QUIET_UTILIZATION = 0.02;
/** New heap worth the stop of some ten milliseconds. */
const WORTHWHILE_BYTES = 4 * 1024 * 1024;

/**
 * Collects garbage when a process comes to rest. V8 collects when it allocates: after a burst, such as thousands of
 * sockets that connect, the garbage of it and the room it grew stay resident for as long as nothing happens.
 * Returns the way to stop; does not keep the process alive.
 */
export function collectWhenIdle(): () => void {
  const collect = garbageCollector();
  let utilization = performance.eventLoopUtilization();
  let quiet = 0;
  let kept = heldBytes();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    quiet = performance.eventLoopUtilization(now, utilization).utilization < QUIET_UTILIZATION ? quiet + 1 : 0;
    utilization = now;
    if (quiet < QUIET_LOOKS || heldBytes() - kept < WORTHWHILE_BYTES) return;
    collect();
    kept = heldBytes();
    quiet = 0;
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function heldBytes(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}

/** The collector, which Node only shows to those who ask for it by a flag. */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
