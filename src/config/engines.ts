import type { Config } from './schema.ts';

/** Whether records and events are in the folder of this server, which no other node can use. */
export function hasStoreInFolder({ store }: Pick<Config, 'store'>): boolean {
  return store.url === '';
}

/** Whether uploaded files are in the folder of this server. */
export function hasFilesInFolder({ blobs }: Pick<Config, 'blobs'>): boolean {
  return blobs.url === '';
}
