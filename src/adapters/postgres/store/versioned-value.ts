/** A record as it was read or written. */
export interface VersionedValue {
  readonly value: string;
  /** The transaction that wrote it: no two values of a record have the same, also not equal ones. */
  readonly version: string;
}
