type Node = Readonly<Record<string, unknown>>;

/**
 * The part of a document at a path, with what each reference in it names in place of the reference. A reference within
 * what it names stays one.
 *
 * @param document has references to parts of itself alone
 * @param place the document's address, which the viewer expects in front of a reference in `$$ref`
 */
export function withoutReferences(document: Node, path: readonly string[], place: string): unknown {
  const resolved = (node: unknown, around: readonly string[]): unknown => {
    if (Array.isArray(node)) return node.map((each) => resolved(each, around));
    if (typeof node !== 'object' || node === null) return node;
    const { $ref } = node as { readonly $ref?: unknown };
    if (typeof $ref !== 'string')
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, resolved(value, around)]));
    if (around.includes($ref)) return node;
    const named = resolved(partAt(document, keysOf($ref)), [...around, $ref]);
    return { ...(named as Node), $$ref: place + $ref };
  };
  return resolved(partAt(document, path), []);
}

function partAt(document: Node, path: readonly string[]): unknown {
  return path.reduce<unknown>((node, key) => (node as Node | undefined)?.[key], document);
}

/** The keys of a JSON pointer in a fragment. */
function keysOf(reference: string): string[] {
  return decodeURIComponent(reference.slice('#/'.length))
    .split('/')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}
