import type { Reader, Store, Transaction } from '../../ports/store.ts';
import { LEASES } from '../records/partitions.ts';
import { putRecord, readRecord } from '../records/record.ts';

/**
 * `LeaseHolder.node` of the only node of a store in a folder: the server that holds the lock of the folder. Processes of
 * earlier servers have ended.
 */
export const FOLDER_NODE = 'folder';

/** A worker that holds a lease, or may take it. */
export interface LeaseHolder {
  /**
   * Names what one primary runs. It starts the next worker of a kind only when the one before has ended, so that one
   * need not wait for the lease of a worker of its own node to expire.
   */
  readonly node: string;
  /** Names the worker in the log. */
  readonly worker: string;
}

/**
 * A lease as its holder knows it: the right to do a kind of work for the whole store. The fencing number is greater than
 * that of every earlier holder, and is checked by each commit under the lease, so clocks may differ and processes may be
 * stopped for as long as they like (docs/decisions/0071-contracts-for-more-machines.md).
 */
export interface Lease {
  readonly name: string;
  readonly fence: number;
}

/** What the records of a lease say. */
export interface LeaseState {
  /** Null if nobody holds it. */
  readonly holder: LeaseHolder | null;
  /** The fencing number of the last holder; 0 if there was none. */
  readonly fence: number;
  /** Grows with each renewal. */
  readonly renewals: number;
  /** Whether a worker of another node waits for it: only then does the holder have to renew it. */
  readonly isWanted: boolean;
}

/** The commit, or the renewal, of a worker whose lease has been taken by another one. Nothing of it was stored. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';

  constructor({ name, fence }: Lease, { holder, fence: current }: Pick<LeaseState, 'holder' | 'fence'>) {
    const taker = holder === null ? 'nobody' : `${holder.worker} of node ${holder.node}`;
    super(
      `the lease "${name}" was lost: it was taken with the fencing number ${fence}, and ${taker} holds it with ${current} now`,
    );
  }
}

type Grant = Pick<LeaseState, 'holder' | 'fence'>;

// Renewals and wishes have keys of their own, so that they do not conflict with the commits under the lease.
const renewalsKey = (name: string): string => `${name}/renewals`;
const wantedKey = (name: string): string => `${name}/wanted`;

/** Reads the records of a lease. */
export async function readLease(reader: Pick<Reader, 'get'>, name: string): Promise<LeaseState> {
  const [grant, renewals, wanted] = await Promise.all([
    readGrant(reader, name),
    reader.get(LEASES, renewalsKey(name)),
    reader.get(LEASES, wantedKey(name)),
  ]);
  return { ...grant, renewals: Number(renewals ?? 0), isWanted: wanted !== undefined };
}

/**
 * Takes a lease if it is still as `seen`: it was not taken, and not renewed, since. Returns null otherwise. The caller
 * decides when it may: nobody holds it, its holder has ended, or it has not been renewed for the whole term.
 */
export function takeLease(store: Store, name: string, holder: LeaseHolder, seen: LeaseState): Promise<Lease | null> {
  return store.transact(async (tx) => {
    const { fence, renewals } = await readLease(tx, name);
    if (fence !== seen.fence || renewals !== seen.renewals) return null;
    putGrant(tx, name, { holder, fence: fence + 1 });
    tx.delete(LEASES, wantedKey(name));
    return { name, fence: fence + 1 };
  });
}

/** Asks the holder of a lease to renew it, so that the caller can see when it does not any more. */
export async function wantLease(store: Store, name: string): Promise<void> {
  await store.transact((tx) => Promise.resolve(tx.put(LEASES, wantedKey(name), '1')));
}

/** Renews a lease. Rejects with `LeaseLostError`. */
export async function renewLease(store: Store, lease: Lease): Promise<void> {
  await store.transact(async (tx) => {
    await requireLease(tx, lease);
    tx.update(LEASES, renewalsKey(lease.name), (current) => String(Number(current ?? 0) + 1));
  });
}

/** Gives a lease up, so that any worker may take it at once. No effect if it was lost. */
export async function releaseLease(store: Store, { name, fence }: Lease): Promise<void> {
  await store.transact(async (tx) => {
    if ((await readGrant(tx, name)).fence === fence) putGrant(tx, name, { holder: null, fence });
  });
}

/**
 * Rejects with `LeaseLostError` unless the lease is held. With the `get` of a transaction, its commit conflicts with
 * a commit that takes the lease: so it comes before that one, or fails.
 */
export async function requireLease(reader: Pick<Reader, 'get'>, lease: Lease): Promise<void> {
  const grant = await readGrant(reader, lease.name);
  if (grant.fence !== lease.fence || grant.holder === null) throw new LeaseLostError(lease, grant);
}

async function readGrant(reader: Pick<Reader, 'get'>, name: string): Promise<Grant> {
  return (await readRecord<Grant>(reader, LEASES, name)) ?? { holder: null, fence: 0 };
}

function putGrant(tx: Transaction, name: string, grant: Grant): void {
  putRecord(tx, LEASES, name, grant);
}
