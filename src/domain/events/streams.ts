import { randomBytes } from 'node:crypto';
import type { Environment } from '../../model/environment.ts';
import type { Store } from '../../ports/store.ts';

/** A new name for the stream of an environment, never used before in any store: 16 hexadecimal digits. */
export function newStreamId(): string {
  return randomBytes(8).toString('hex');
}

/** The stream in the store that the events of an environment are in. */
export function streamOf({ id, streamId }: Pick<Environment, 'id' | 'streamId'>): string {
  return streamId ?? id;
}

/**
 * What clients know the stream of an environment by: positions that were taken under another epoch mean nothing in it. Changes
 * when the store is restored from a backup, and when the environment is deleted and imported again. At most 64 characters
 * of A–Z a–z 0–9 and -.
 */
export function epochOf({ epoch }: Pick<Store, 'epoch'>, { streamId }: Pick<Environment, 'streamId'>): string {
  return streamId === undefined ? epoch : `${epoch}-${streamId}`;
}
