import { fromBase64 } from '../base64.ts';

/** Changed with the messages between tabs: tabs of different releases must not share a connection. */
const VERSION = 1;
/** The claims that differ between tokens of the same rights. */
const changing = new Set(['exp', 'iat', 'nbf', 'jti']);

/** The claims of a user token as text, without its times and its id. Throws for text that is no token. */
export function identityOf(token: string): string {
  const payload = fromBase64((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'));
  const claims = JSON.parse(new TextDecoder().decode(payload)) as object;
  return JSON.stringify(
    Object.entries(claims)
      .filter(([name]) => !changing.has(name))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** The token among the subprotocols of a socket; empty if there is none. */
export function tokenOf(protocols: readonly string[]): string {
  return valueOf(protocols, 'collab.token.');
}

/**
 * The name of the connection that a socket may share: the same for the same server, publishable key and identity of the
 * user. Null if the token cannot be read.
 */
export function nameOf(url: string, protocols: readonly string[]): string | null {
  try {
    return (
      `collab.${VERSION} ` +
      `${JSON.stringify([url.replace(/\?.*$/, ''), valueOf(protocols, 'collab.key.'), identityOf(tokenOf(protocols))])}`
    );
  } catch {
    return null;
  }
}

const valueOf = (protocols: readonly string[], prefix: string): string =>
  protocols.find((each) => each.startsWith(prefix))?.slice(prefix.length) ?? '';
