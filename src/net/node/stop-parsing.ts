import type { Socket } from 'node:net';

/** The parts of the parser of a connection that Node's HTTP server itself uses. They have no public names. */
interface Parser {
  onIncoming?: unknown;
  readonly incoming?: { readonly _dump?: () => void } | null;
}

/** What the handler of a parsed head returns for an upgrade: the parser leaves to it what follows the request. */
const UPGRADE = 2;

/**
 * Leaves the rest of what was read from a connection unparsed, as far as it is further requests, and drops what it has
 * of a body. Without this, Node creates objects for thousands of requests or chunks that came in one packet and that
 * nobody handles. A version of Node whose parser has other names does just that.
 */
export function stopParsing(socket: Socket): void {
  const { parser } = socket as { parser?: Parser | null };
  if (typeof parser?.onIncoming !== 'function') return;
  parser.onIncoming = () => UPGRADE;
  parser.incoming?._dump?.();
}
