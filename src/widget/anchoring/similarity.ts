/** How alike two texts are, from 0 to 1: the Dice coefficient of their pairs of adjacent characters (Dice 1945). */
export function similarity(one: string, other: string): number {
  if (one === other) return 1;
  const pairs = pairsOf(one);
  let common = 0;
  const total = one.length + other.length - 2;
  for (let at = 0; at < other.length - 1; at += 1) {
    const pair = other.slice(at, at + 2);
    const left = pairs.get(pair) ?? 0;
    if (left === 0) continue;
    pairs.set(pair, left - 1);
    common += 1;
  }
  return total <= 0 ? 0 : (2 * common) / total;
}

function pairsOf(text: string): Map<string, number> {
  const pairs = new Map<string, number>();
  for (let at = 0; at < text.length - 1; at += 1) {
    const pair = text.slice(at, at + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}
