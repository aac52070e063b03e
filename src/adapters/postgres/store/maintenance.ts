import { quote } from '../connection.ts';

/** SQL that trims a stream, as `Store.trimEvents`: its events are no longer read; their rows go with their partition. */
export function trimStream(stream: string, seq: number): string {
  return `update collab.streams set oldest_seq = greatest(oldest_seq, least(${Math.trunc(seq)} + 1, last_seq))
    where stream = ${quote(stream)} and not ended and last_seq > 0`;
}
