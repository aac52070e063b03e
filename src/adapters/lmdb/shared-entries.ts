import type { Database as Table, RootDatabase } from 'lmdb';
import { LEASE_MS, type Shared, type SharedRecord } from '../../ports/shared.ts';

/** The part of `Shared` that is about owners. */
export type SharedEntries = Pick<
  Shared,
  'beginLease' | 'renewLease' | 'endLease' | 'count' | 'total' | 'put' | 'delete' | 'list' | 'get'
> & {
  /** Deletes the records that have expired, and the entries without a lease. */
  sweep(): void;
};

/** What `sharedEntries` stores its entries in. */
export interface EntriesOptions {
  readonly root: RootDatabase;
  /** owner -> when its lease ends, by the time of the memory. */
  readonly leases: Table<string, string>;
  /** `key owner` -> count. */
  readonly counts: Table<string, string>;
  /** `key name` -> record. */
  readonly records: Table<string, string>;
  /** The time of the memory. */
  readonly now: () => number;
  /** Runs a function on a new snapshot. */
  readonly reading: <T>(read: () => T) => T;
}

/** A record as it is stored: `owner putAt expiresAt text`, where expiresAt may be empty. */
interface StoredRecord {
  readonly owner: string;
  readonly putAt: number;
  /** Infinity for never. */
  readonly expiresAt: number;
  readonly text: string;
}

/** Implements the leases of `Shared` and what they hold. */
export function sharedEntries({ root, leases, counts, records, now, reading }: EntriesOptions): SharedEntries {
  const hasLease = (owner: string, at: number): boolean => owner === '' || Number(leases.get(owner) ?? 0) > at;

  /**
   * Returns a function that says whether, at a time, an entry has expired or its owner has no lease. It reads each lease once, so
   * it must not be used after the snapshot or transaction.
   */
  const isGoneAt = (at: number): ((entry: { readonly owner: string; readonly expiresAt?: number }) => boolean) => {
    const known = new Map<string, boolean>();
    return ({ owner, expiresAt = Number.POSITIVE_INFINITY }) => {
      let has = known.get(owner);
      if (has === undefined) known.set(owner, (has = hasLease(owner, at)));
      return !has || expiresAt <= at;
    };
  };

  const totalOf = (key: string): number => {
    const isGone = isGoneAt(now());
    let total = 0;
    for (const { key: name, value } of counts.getRange({ start: `${key} `, end: `${key}!` }))
      if (!isGone({ owner: ownerOfCount(name) })) total += Number(value);
    return total;
  };

  /** The records of a range that are shown. */
  const shown = (range: Iterable<{ readonly key: string; readonly value: string }>): SharedRecord[] => {
    const at = now();
    const isGone = isGoneAt(at);
    const found: SharedRecord[] = [];
    for (const { key, value } of range) {
      const record = readRecord(value);
      if (isGone(record)) continue;
      const { owner, putAt, expiresAt, text } = record;
      const afterKey = key.indexOf(' ');
      const expiresInMs = expiresAt === Number.POSITIVE_INFINITY ? null : expiresAt - at;
      found.push({ key: key.slice(0, afterKey), name: key.slice(afterKey + 1), owner, text, putAt, expiresInMs });
    }
    return found;
  };

  /**
   * Runs a transaction in which the counts of an owner are deleted, and each of its records is passed on. What there is
   * to clear is looked for on a snapshot: a transaction over everything would let all other writes wait.
   */
  const clear = (owner: string, onRecord: (key: string, record: StoredRecord) => void, then: () => void): void => {
    const found = reading(() => ({
      counts: [...counts.getKeys()].filter((key) => ownerOfCount(key) === owner),
      records: [...records.getRange({})].filter(({ value }) => value.startsWith(`${owner} `)).map(({ key }) => key),
    }));
    root.transactionSync(() => {
      for (const key of found.counts) counts.removeSync(key);
      for (const key of found.records) {
        const value = records.get(key);
        // Another owner may have replaced it.
        if (value?.startsWith(`${owner} `) === true) onRecord(key, readRecord(value));
      }
      then();
    });
  };
  const remove = (key: string): void => void records.removeSync(key);

  return {
    async beginLease(owner) {
      clear(owner, remove, () => leases.putSync(owner, String(now() + LEASE_MS)));
    },

    async renewLease(owner) {
      return root.transactionSync(() => {
        const at = now();
        const has = hasLease(owner, at);
        if (has) leases.putSync(owner, String(at + LEASE_MS));
        return has;
      });
    },

    async endLease(owner, keepRecordsMs) {
      const at = now();
      const isKept = reading(() => hasLease(owner, at));
      const release = (key: string, record: StoredRecord): void => {
        const expiresAt = Math.min(record.expiresAt, at + keepRecordsMs);
        if (isKept) records.putSync(key, renderRecord({ ...record, owner: '', expiresAt }));
        else remove(key);
      };
      clear(owner, release, () => leases.removeSync(owner));
    },

    async count(key, owner, delta) {
      return root.transactionSync(() => {
        const name = `${key} ${owner}`;
        const count = Number(counts.get(name) ?? 0) + delta;
        if (count > 0) counts.putSync(name, String(count));
        else counts.removeSync(name);
        return totalOf(key);
      });
    },

    async total(key) {
      return reading(() => totalOf(key));
    },

    async put({ key, name, owner, text, expiresInMs = Number.POSITIVE_INFINITY }) {
      root.transactionSync(() => {
        const putAt = now();
        records.putSync(`${key} ${name}`, renderRecord({ owner, putAt, expiresAt: putAt + expiresInMs, text }));
      });
    },

    async delete(key, name) {
      root.transactionSync(() => remove(`${key} ${name}`));
    },

    async list(key) {
      return reading(() => shown(records.getRange({ start: `${key} `, end: `${key}!` })));
    },

    async get(key, name) {
      return reading(() => {
        const value = records.get(`${key} ${name}`);
        return value === undefined ? undefined : shown([{ key: `${key} ${name}`, value }])[0];
      });
    },

    sweep() {
      // What is to go is looked for on a snapshot: a transaction over everything would let all other writes wait.
      const found = reading(() => {
        const at = now();
        const isGone = isGoneAt(at);
        return {
          counts: [...counts.getKeys()].filter((key) => isGone({ owner: ownerOfCount(key) })),
          records: [...records.getRange({})].filter(({ value }) => isGone(readRecord(value))).map(({ key }) => key),
          leases: [...leases.getRange({})].filter(({ value }) => Number(value) <= at).map(({ key }) => key),
        };
      });
      for (const key of found.counts)
        root.transactionSync(() => !hasLease(ownerOfCount(key), now()) && counts.removeSync(key));
      for (const key of found.records)
        root.transactionSync(() => {
          const value = records.get(key);
          if (value !== undefined && isGoneAt(now())(readRecord(value))) remove(key);
        });
      for (const owner of found.leases)
        root.transactionSync(() => Number(leases.get(owner) ?? 0) <= now() && leases.removeSync(owner));
    },
  };
}

const ownerOfCount = (name: string): string => name.slice(name.lastIndexOf(' ') + 1);

function renderRecord({ owner, putAt, expiresAt, text }: StoredRecord): string {
  return `${owner} ${putAt} ${expiresAt === Number.POSITIVE_INFINITY ? '' : expiresAt} ${text}`;
}

function readRecord(value: string): StoredRecord {
  const afterOwner = value.indexOf(' ');
  const afterPut = value.indexOf(' ', afterOwner + 1);
  const afterExpiry = value.indexOf(' ', afterPut + 1);
  return {
    owner: value.slice(0, afterOwner),
    putAt: Number(value.slice(afterOwner + 1, afterPut)),
    expiresAt: afterExpiry === afterPut + 1 ? Number.POSITIVE_INFINITY : Number(value.slice(afterPut + 1, afterExpiry)),
    text: value.slice(afterExpiry + 1),
  };
}
