import { randomBytes } from 'node:crypto';
import type { Environment } from '../../model/environments/environment.ts';
import type { Store } from '../../ports/store.ts';

/** A new, random id for the stream of an environment: 16 hexadecimal digits. */
export function newStreamId(): string {
  return randomBytes(8).toString('hex');
}

/** The name of the stream in the store that has the events of an environment. */
export function streamOf({ id, streamId }: Pick<Environment, 'id' | 'streamId'>): string {
  return streamId ?? id;
}

/**
 * The epoch of the stream of an environment: positions of another epoch are meaningless in it. It changes when the
 * store is restored from a backup, and when the environment is deleted and imported again. At most 64 characters of A–Z
 * a–z 0–9 and -.
 */
export function epochOf({ epoch }: Pick<Store, 'epoch'>, { streamId }: Pick<Environment, 'streamId'>): string {
  return streamId === undefined ? epoch : `${epoch}-${streamId}`;
}
