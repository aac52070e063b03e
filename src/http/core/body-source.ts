/** A response body that is read in pieces while it is sent. */
export interface BodySource {
  /** Bytes in total. */
  readonly size: number;
  /** Returns `length` bytes from `offset` on; fewer only at the end. */
  read(offset: number, length: number): Promise<Uint8Array>;
}
