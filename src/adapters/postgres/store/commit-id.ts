import { randomBytes } from 'node:crypto';

/** A new id of a commit: a UUID that begins with the time, so that ids of one time are neighbours (version 7). */
export function newCommitId(): string {
  const random = randomBytes(10).toString('hex');
  return format(Date.now(), `7${random.slice(0, 3)}`, `b${random.slice(3, 6)}`, random.slice(6, 18));
}

/** A UUID that is less than each id that was made in the last `minutes` by a process with the clock of this one. */
export function oldestCommitId(minutes: number): string {
  return format(Date.now() - minutes * 60_000, '0000', '0000', '000000000000');
}

function format(ms: number, third: string, fourth: string, last: string): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-${third}-${fourth}-${last}`;
}
