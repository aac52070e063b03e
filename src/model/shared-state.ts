import * as Type from 'typebox';

/** The record of the shared state of a room, without its bytes (docs/api.md, "Shared state"). */
export interface SharedStateRecord {
  /** The number of changes since the room's first state, including clearing. */
  readonly version: number;
  /** 0 if there is no state: a state is never empty. */
  readonly sizeBytes: number;
  /** First 16 hex digits of the SHA-256 of the bytes. */
  readonly digest: string;
  /** Merges since the state was last replaced or compacted. */
  readonly merges: number;
  /** Null if there is no state. */
  readonly updatedAt: string | null;
  /** The user who wrote it; null for a backend, and if there is no state. */
  readonly updatedBy: string | null;
}

/** The record of a room that never had a state. */
export const noState: SharedStateRecord = {
  version: 0,
  sizeBytes: 0,
  digest: 'e3b0c44298fc1c14',
  merges: 0,
  updatedAt: null,
  updatedBy: null,
};

/** The content type of every shared state, whatever type a client sends. */
export const STATE_CONTENT_TYPE = 'application/octet-stream';

/** The JSON body of a PUT of a shared state. */
export const SharedStatePutSchema = Type.Object({
  state: Type.String({ contentEncoding: 'base64', description: 'The bytes as base64.' }),
});
