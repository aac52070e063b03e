import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';

/** The end of the message, which is cut off. In the library, a zero byte follows. */
const END = Buffer.from(', buffer sizes %i %i %i\0');
/** A line of /proc/self/maps for constants of the library: the addresses of its first byte and after its last one. */
const CONSTANTS = /^([0-9a-f]+)-([0-9a-f]+) r--p .*lmdb.*\.node$/gm;

let isTried = false;

/**
 * Shortens the message that LMDB formats when it cannot write a page, in the memory of this process. lmdb-js 3.5.6 has
 * a buffer of 100 bytes for it (`mdb_page_flush` in its mdb.c), but the message can take 125, as two of its numbers are
 * not initialized. What lies behind the buffer on the heap is then overwritten, and the process ends by SIGABRT or
 * SIGSEGV at some later time. Without those numbers, it takes 84 bytes at most.
 *
 * Has no effect where the system does not let a process do that: without /proc, or with a Linux that is set not to
 * (`proc_mem.force_override=never`). Idempotent.
 */
export function shortenPageWriteMessage(): void {
  if (isTried) return;
  isTried = true;
  try {
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      for (const [, start = '', end = ''] of readFileSync('/proc/self/maps', 'utf8').matchAll(CONSTANTS))
        shortenIn(memory, Number.parseInt(start, 16), Number.parseInt(end, 16));
    } finally {
      closeSync(memory);
    }
  } catch {
    // The system does not let it.
  }
}

/** Linux copies the page for this process before it is changed, so the file and other processes keep theirs. */
function shortenIn(memory: number, start: number, end: number): void {
  const constants = Buffer.alloc(end - start);
  readSync(memory, constants, 0, constants.length, start);
  const at = constants.indexOf(END);
  if (at !== -1) writeSync(memory, Buffer.of(0), 0, 1, start + at);
}
