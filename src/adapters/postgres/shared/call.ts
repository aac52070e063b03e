/** What a call of `Shared` asks of the database: its name in the function `collab.shared_calls_1`, and its arguments. */
export interface Call {
  readonly name:
    | 'hit'
    | 'spend'
    | 'look'
    | 'count'
    | 'total'
    | 'put'
    | 'delete'
    | 'list'
    | 'get'
    | 'begin'
    | 'renew'
    | 'end';
  /** The key or the owner first. */
  readonly args: readonly [subject: string, ...rest: readonly (string | number | boolean | null)[]];
}

/** Bytes that a key and a name may have together: an index has no room for more. */
const MAX_KEY_BYTES = 2_000;

const reads: ReadonlySet<Call['name']> = new Set(['look', 'total', 'list', 'get']);

/** Whether a call changes nothing. */
export const isRead = ({ name }: Call): boolean => reads.has(name);

/** Throws if a key, with the name under it, is longer than an index allows. */
export function checkKey(...parts: readonly string[]): void {
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  if (bytes > MAX_KEY_BYTES)
    throw new RangeError(`a key in shared memory has at most ${MAX_KEY_BYTES} bytes with its name, not ${bytes}`);
}
