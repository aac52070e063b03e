import type { Config } from '../config/schema.ts';
import { clientAddress, normaliseAddress } from '../lib/addresses/client-address.ts';
import { Networks } from '../lib/addresses/networks.ts';
import { originOf } from '../lib/addresses/origin.ts';
import { BoundedMap } from '../lib/bounded-map.ts';
import type { CoreResponse } from './core.ts';

/** The part of a request that tells about the client behind a proxy. */
export interface ForwardedRequest {
  /** The other end of the connection, as `remoteAddress` returns it. */
  readonly peer: string;
  readonly head: {
    readonly host: string;
    /** All `X-Forwarded-For` lines in order, joined by commas. */
    readonly forwardedFor: string;
    readonly forwardedProto: string;
  };
}

/** IPv4 addresses of which the text is kept, so that it is built and hashed once and not for every request. */
const KNOWN_ADDRESSES = 10_000;
const known = new BoundedMap<number, string>(KNOWN_ADDRESSES);

/** The other end of a connection as text, in the form of the core. Throws if the connection has ended. */
export function remoteAddress(response: CoreResponse): string {
  const bytes = response.getRemoteAddress();
  if (bytes.byteLength !== 4) return textOf(response);
  const key = new DataView(bytes).getUint32(0);
  let text = known.get(key);
  if (text === undefined) known.set(key, (text = new Uint8Array(bytes).join('.')));
  return text;
}

function textOf(response: CoreResponse): string {
  let text = '';
  // Faster than a Buffer for so few characters, for every request.
  for (const code of new Uint8Array(response.getRemoteAddressAsText())) text += String.fromCharCode(code);
  return text;
}

/** Reads what proxies report about their clients. Only the proxies in `trustProxy` are believed. */
export class TrustedProxies {
  readonly #networks: Networks;
  /** The public address of the server without a slash at its end; '' if the configuration names none. */
  readonly publicUrl: string;

  constructor({ trustProxy, publicUrl }: Pick<Config, 'trustProxy' | 'publicUrl'>) {
    this.#networks = new Networks(trustProxy);
    this.publicUrl = publicUrl;
  }

  /** The address of the client, in the form of `normaliseAddress`. */
  clientAddress({ peer, head }: ForwardedRequest): string {
    return clientAddress(peer, head.forwardedFor, this.#networks);
  }

  /** Whether an address, as `remoteAddress` returns it, is that of a trusted proxy. */
  isProxy(peer: string): boolean {
    return this.#networks.has(normaliseAddress(peer) ?? '');
  }

  /** Whether the client uses TLS, which the server knows only from a trusted proxy. */
  isSecure(request: ForwardedRequest): boolean {
    return request.head.forwardedProto === 'https' && this.isProxy(request.peer);
  }

  /**
   * The address of the server as the client knows it, without a slash at its end: `publicUrl`, or else the one that the
   * request was sent to; '' if its `Host` is not a valid host.
   */
  baseUrl(request: ForwardedRequest): string {
    return this.publicUrl === '' ? originOf(request.head.host, this.isSecure(request)) : this.publicUrl;
  }
}
