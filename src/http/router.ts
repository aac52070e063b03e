/** A route that matched, and the parts of the path that its parameters stand for, still percent-encoded. */
export interface Match<T> {
  readonly target: T;
  readonly params: Readonly<Record<string, string>>;
}

interface Leaf<T> {
  readonly target: T;
  readonly names: readonly string[];
}

interface Node<T> {
  readonly fixed: Map<string, Node<T>>;
  parameter: Node<T> | null;
  readonly leaves: Map<string, Leaf<T>>;
}

/**
 * Finds routes by method and path, segment by segment. A fixed segment wins over a parameter and is not reconsidered;
 * one trailing slash makes no difference; no segment may be empty.
 */
export class Router<T> {
  readonly #root: Node<T> = newNode();

  /**
   * @param pattern `/rooms/:roomId/threads`
   * @throws {Error} when the method and pattern are taken
   */
  add(method: string, pattern: string, target: T): void {
    const names: string[] = [];
    let node = this.#root;
    for (const segment of segmentsOf(pattern) ?? []) {
      if (segment.startsWith(':')) {
        names.push(segment.slice(1));
        node = node.parameter ??= newNode();
      } else {
        const next = node.fixed.get(segment) ?? newNode();
        node.fixed.set(segment, next);
        node = next;
      }
    }
    if (node.leaves.has(method)) throw new Error(`two routes are ${method} ${pattern}`);
    node.leaves.set(method, { target, names });
  }

  /** The route of a method and a path without query, or null. HEAD finds what GET does. */
  find(method: string, path: string): Match<T> | null {
    const segments = segmentsOf(path);
    if (segments === null) return null;
    const values: string[] = [];
    let node = this.#root;
    for (const segment of segments) {
      let next = node.fixed.get(segment) ?? null;
      if (next === null) {
        next = node.parameter;
        values.push(segment);
      }
      if (next === null) return null;
      node = next;
    }
    const leaf = node.leaves.get(method === 'HEAD' ? 'GET' : method);
    if (leaf === undefined) return null;
    const params: Record<string, string> = {};
    for (let i = 0; i < leaf.names.length; i++) params[leaf.names[i] ?? ''] = values[i] ?? '';
    return { target: leaf.target, params };
  }
}

function newNode<T>(): Node<T> {
  return { fixed: new Map(), parameter: null, leaves: new Map() };
}

/** The parts between the slashes, or null when one is empty. */
function segmentsOf(path: string): string[] | null {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
  if (end < path.length && path.endsWith('/', end)) return null;
  const segments: string[] = [];
  for (let start = 1; start < end; ) {
    const slash = path.indexOf('/', start);
    const stop = slash < 0 || slash > end ? end : slash;
    if (stop === start) return null;
    segments.push(path.slice(start, stop));
    start = stop + 1;
  }
  return segments;
}
