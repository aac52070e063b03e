import { readdirSync, readFileSync } from 'node:fs';

/**
 * The signal that interrupts the waiting of a thread. By default a process ignores it, and it has no other use here:
 * Linux sends it for urgent data on a socket, to processes that have asked for that.
 */
export const WAKE_SIGNAL = 'SIGURG';

/** How long a thread may wait for a lock that other processes share until it is woken, in milliseconds; then again. */
const WAKE_MS = 500;

/**
 * The number of `futex`, operation and value of a thread that waits for a lock which processes share: FUTEX_WAIT without
 * FUTEX_PRIVATE_FLAG, for a word with the flag FUTEX_WAITERS. 202 on x64, 98 on arm64.
 */
const LOCK_WAIT = /^(?:202|98) 0x[0-9a-f]+ 0x0 0x[89a-f][0-9a-f]{7} /;

let isAllowed = false;
/** Which of the waiting threads is woken next. */
let turn = 0;

/** Lets `WAKE_SIGNAL` interrupt the threads of this process. Idempotent. */
export function allowWaking(): void {
  if (isAllowed) return;
  isAllowed = true;
  process.on(WAKE_SIGNAL, () => {});
}

/**
 * Awaits work in a thread that may wait for a lock of LMDB, and wakes the threads of this process that wait for one
 * now and then. Call `allowWaking` before.
 *
 * A waiting thread can miss the release of a robust mutex: the kernel wakes the first of two that wait, that one is
 * killed before it runs, and a third one has taken the mutex meanwhile without the mark for waiting threads. Its
 * release then wakes no thread. A thread that a signal interrupts looks at the mutex again
 * (docs/decisions/0084-lost-wake-ups.md).
 */
export async function awaken<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(wakeNext, WAKE_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

/**
 * Wakes one of the threads of this process that wait for a lock: the kernel keeps one signal of a kind for all threads
 * of a process, so a second one right after it would be lost.
 */
function wakeNext(): void {
  const threads = threadsInLocks(process.pid);
  const thread = threads[turn++ % threads.length];
  if (thread === undefined) return;
  try {
    // The kernel gives a signal for the id of a thread to that thread, if it can take it.
    process.kill(thread, WAKE_SIGNAL);
  } catch {
    // It has ended.
  }
}

/** The ids of the threads of a process that wait for a lock which processes share; none if the system does not say. */
export function threadsInLocks(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map(Number)
      .filter((thread) => isInLock(pid, thread));
  } catch {
    return [];
  }
}

function isInLock(pid: number, thread: number): boolean {
  try {
    return LOCK_WAIT.test(readFileSync(`/proc/${pid}/task/${thread}/syscall`, 'utf8'));
  } catch {
    // It has ended.
    return false;
  }
}
