/**
 * The candidate most like `word`, to suggest after a misspelling; undefined if more than a third of the letters of
 * every candidate would have to change. Ignores case and separators (`.`, `_`, `-`).
 */
export function closestMatch(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Infinity;
  for (const candidate of candidates) {
    const distance = editDistance(plain(word), plain(candidate));
    if (distance < least && distance <= Math.max(1, Math.floor(plain(candidate).length / 3))) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

function plain(text: string): string {
  return text.toLowerCase().replace(/[._-]/g, '');
}

/** Damerau–Levenshtein distance: the number of letters inserted, deleted, replaced or swapped with their neighbour. */
function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = at(last, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const swapped =
        from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
          ? at(beforeLast, column - 2) + 1
          : Infinity;
      current.push(Math.min(replaced, swapped, at(last, column) + 1, at(current, column - 1) + 1));
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
