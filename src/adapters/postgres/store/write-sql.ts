import type { StoredRecord } from '../../../ports/store-transfer.ts';
import { quoteArray } from '../connection.ts';
import { encodeText } from '../stored-text.ts';

/** An event with its position. */
export interface AppendedEvent {
  readonly stream: string;
  readonly seq: number;
  readonly text: string;
}

/**
 * The statement that writes records in place of those with the same names.
 *
 * @param version SQL of the transaction that writes them
 */
export function upsertRecords(records: readonly StoredRecord[], version: string): string {
  return `insert into collab.records (partition, key, value, version) select partition, key, value, ${version}
    from unnest(
      ${quoteArray(records.map(({ partition }) => partition))},
      ${quoteArray(records.map(({ key }) => key))},
      ${quoteArray(records.map(({ value }) => encodeText(value)))}
    ) r (partition, key, value)
    on conflict (partition, key) do update set value = excluded.value, version = excluded.version`;
}

/** The statement that adds events. */
export function insertEvents(events: readonly AppendedEvent[]): string {
  return `insert into collab.events (stream, seq, text) select stream, seq, text from unnest(
      ${quoteArray(events.map(({ stream }) => stream))},
      '{${events.map(({ seq }) => seq).join()}}'::bigint[],
      ${quoteArray(events.map(({ text }) => encodeText(text)))}
    ) e (stream, seq, text)`;
}
