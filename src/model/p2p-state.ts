import Type from 'typebox';

/** What is known of the shared state of a room besides its bytes (docs/api.md, "Shared state"). */
export interface P2pRecord {
  /** Counts every change since the room's first state, clearing too. */
  readonly version: number;
  /** 0 when there is none: a state is never empty. */
  readonly sizeBytes: number;
  /** First 16 hex digits of the SHA-256 of the bytes. */
  readonly digest: string;
  /** Merges since the state was last replaced or compacted. */
  readonly merges: number;
  /** Null when there is no state. */
  readonly updatedAt: string | null;
  /** The user who wrote it; null for a backend, and when there is no state. */
  readonly updatedBy: string | null;
}

/** The state of a room that never had one. */
export const noState: P2pRecord = { version: 0, sizeBytes: 0, digest: 'e3b0c44298fc1c14', merges: 0, updatedAt: null, updatedBy: null };

/** Opaque to the server, whatever a client says. */
export const P2P_CONTENT_TYPE = 'application/octet-stream';

export const P2pStatePutSchema = Type.Object({
  state: Type.String({ contentEncoding: 'base64', description: 'The bytes as base64.' }),
});
