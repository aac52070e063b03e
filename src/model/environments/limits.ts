/** Bounds on requests (docs/api.md, "Limits"). An environment may override each. Lengths are in UTF-16 units. */
export interface Limits {
  readonly bodyLength: number;
  readonly mentions: number;
  readonly attachments: number;
  /** Of user ids. */
  readonly idLength: number;
  /** Of room ids, which may be the address of a page. */
  readonly roomIdLength: number;
  readonly selectorLength: number;
  readonly metadataKeys: number;
  readonly metadataKeyLength: number;
  readonly metadataValueLength: number;
  readonly commentsPerThread: number;
  readonly emojiPerComment: number;
  readonly reactionsPerComment: number;
  readonly listHardCap: number;
  /** The maximum size of a JSON body over HTTP, in bytes. */
  readonly jsonBodyBytes: number;
}

/** The limits of an environment without overrides. */
export const defaultLimits: Limits = {
  bodyLength: 10_000,
  mentions: 50,
  attachments: 10,
  idLength: 128,
  roomIdLength: 512,
  selectorLength: 2_048,
  metadataKeys: 50,
  metadataKeyLength: 40,
  metadataValueLength: 4_000,
  commentsPerThread: 10_000,
  emojiPerComment: 20,
  reactionsPerComment: 1_000,
  listHardCap: 10_000,
  jsonBodyBytes: 256 * 1024,
};

/** The maximum value of `jsonBodyBytes`: how much of a body is read before its environment is known. */
export const MAX_JSON_BODY_BYTES = 1_000_000;
