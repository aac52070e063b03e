/** A route that matched, and the values of its path parameters, still percent-encoded. */
export interface Match<T> {
  readonly target: T;
  readonly params: Readonly<Record<string, string>>;
  /** The pattern that the route was added with. */
  readonly pattern: string;
}

interface Leaf<T> {
  readonly target: T;
  readonly pattern: string;
  readonly names: readonly string[];
}

interface Node<T> {
  /**
   * The literal segments at this place. There are few, and comparing them in place is faster than to cut out and hash a
   * segment.
   */
  readonly literals: { readonly text: string; readonly node: Node<T> }[];
  parameter: Node<T> | null;
  readonly leaves: Map<string, Leaf<T>>;
}

/**
 * Finds routes by method and path, segment by segment. A literal segment takes precedence over a parameter, without
 * backtracking. One trailing slash is ignored. No segment may be empty.
 */
export class Router<T> {
  readonly #root: Node<T> = newNode();

  /**
   * Adds a route.
   *
   * @param pattern such as `/rooms/:roomId/threads`
   * @throws {Error} if there is a route with this method and pattern
   */
  add(method: string, pattern: string, target: T): void {
    const names: string[] = [];
    let node = this.#root;
    for (const segment of pattern.split('/').filter((part) => part !== '')) {
      if (segment.startsWith(':')) {
        names.push(segment.slice(1));
        node = node.parameter ??= newNode();
      } else {
        let next = node.literals.find(({ text }) => text === segment)?.node;
        if (next === undefined) node.literals.push({ text: segment, node: (next = newNode()) });
        node = next;
      }
    }
    if (node.leaves.has(method)) throw new Error(`two routes are ${method} ${pattern}`);
    node.leaves.set(method, { target, pattern, names });
  }

  /** The route for a method and a path without its query, or null. HEAD finds the route of GET. */
  find(method: string, path: string): Match<T> | null {
    const values: string[] = [];
    const leaf = this.#node(path, values)?.leaves.get(method === 'HEAD' ? 'GET' : method);
    if (leaf === undefined) return null;
    const params: Record<string, string> = {};
    for (let i = 0; i < leaf.names.length; i++) params[leaf.names[i] ?? ''] = values[i] ?? '';
    return { target: leaf.target, params, pattern: leaf.pattern };
  }

  /** The routes at a path without its query, of every method. */
  at(path: string): readonly T[] {
    return [...(this.#node(path, [])?.leaves.values() ?? [])].map(({ target }) => target);
  }

  /** The node of a path, or null. The values of the path's parameters are appended to `values`. */
  #node(path: string, values: string[]): Node<T> | null {
    const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
    if (end < path.length && path.endsWith('/', end)) return null;
    let node = this.#root;
    for (let start = 1; start < end;) {
      const slash = path.indexOf('/', start);
      const stop = slash < 0 || slash > end ? end : slash;
      if (stop === start) return null;
      const next = literalAt(node, path, start, stop) ?? node.parameter;
      if (next === null) return null;
      if (next === node.parameter) values.push(path.slice(start, stop));
      node = next;
      start = stop + 1;
    }
    return node;
  }
}

function newNode<T>(): Node<T> {
  return { literals: [], parameter: null, leaves: new Map() };
}

/** The node of the literal that the segment of `path` from `start` to `stop` is. */
function literalAt<T>({ literals }: Node<T>, path: string, start: number, stop: number): Node<T> | undefined {
  for (const { text, node } of literals) if (text.length === stop - start && path.startsWith(text, start)) return node;
  return undefined;
}
