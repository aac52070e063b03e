/** A part of a file. `end` is exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The range that a `Range` header requests of a file of `size` bytes. Null for the whole file: without a header, for a
 * malformed one, and for one that requests several ranges. `unsatisfiable` if the range is outside the file.
 */
export function rangeOf(header: string, size: number): ByteRange | null | 'unsatisfiable' {
  const [, first, last] = /^bytes\s*=\s*(\d*)\s*-\s*(\d*)$/i.exec(header.trim()) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first === '')
    return Number(last) === 0 ? 'unsatisfiable' : { start: Math.max(0, size - Number(last)), end: size };
  const start = Number(first);
  if (last !== '' && Number(last) < start) return null;
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size : Math.min(size, Number(last) + 1) };
}
