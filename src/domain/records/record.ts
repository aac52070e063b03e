import { DataError } from '../../model/errors.ts';
import type { Entry, RangeOptions, Reader, Transaction } from '../../ports/store.ts';
import { scanEntries } from './scan.ts';

// Nearly all records are values rendered as JSON. They are parsed and rendered here, so that the rest of the domain has
// values. Exceptions are texts that are written for each new comment and have a faster form: `parseThreadStats`,
// `parseUsage`, `parseParticipation`. What is shown as it is stored, such as a comment, stays text as well: `RecordText`.

/** A record of a partition, parsed. */
export interface RecordEntry<T> {
  readonly key: string;
  readonly value: T;
}

/** The value of a stored text. The caller names the type that the partition of the record contains. */
export function parseRecord<T>(text: string): T {
  return JSON.parse(text) as T;
}

/** As `parseRecord`. Throws a `DataError` that names a record whose text another program has written or damaged. */
function parseNamed<T>(partition: string, key: string, text: string): T {
  try {
    return parseRecord<T>(text);
  } catch {
    throw new DataError(
      `The record ${partition} ${key} is not valid JSON. \`collab doctor --deep\` lists all such records; bring them back from a backup.`,
    );
  }
}

/**
 * The value of a record; undefined if there is none. Guarded in a transaction, as `Transaction.get` is. Throws a
 * `DataError` for a text that is not JSON.
 */
export async function readRecord<T>(
  reader: Pick<Reader, 'get'>,
  partition: string,
  key: string,
): Promise<T | undefined> {
  const text = await reader.get(partition, key);
  return text === undefined ? undefined : parseNamed<T>(partition, key, text);
}

/** The records of a partition, as `Reader.range` returns them. */
export async function readRecords<T>(
  reader: Pick<Reader, 'range'>,
  partition: string,
  options?: RangeOptions,
): Promise<RecordEntry<T>[]> {
  const entries = await reader.range(partition, options);
  return entries.map(({ key, value }) => ({ key, value: parseNamed<T>(partition, key, value) }));
}

/** The records of a partition whose keys start with `prefix`, one by one, read in slices as by `scanSlices`. */
export async function* scanRecords<T>(reader: Reader, partition: string, prefix = ''): AsyncIterable<RecordEntry<T>> {
  for await (const { key, value } of scanEntries(reader, partition, prefix))
    yield { key, value: parseNamed<T>(partition, key, value) };
}

/** Writes a record in a transaction. */
export function putRecord(tx: Pick<Transaction, 'put'>, partition: string, key: string, value: unknown): void {
  tx.put(partition, key, JSON.stringify(value));
}

/** A record that is shown as it is stored, and is parsed when a rule first asks for its value. */
export class RecordText<T> {
  readonly text: string;
  #value: T | undefined;

  constructor({ value }: Pick<Entry, 'value'>) {
    this.text = value;
  }

  get value(): T {
    return (this.#value ??= parseRecord<T>(this.text));
  }
}
