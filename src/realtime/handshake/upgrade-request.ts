import type { HttpRequest } from 'uWebSockets.js';
import { type ResumePoint, resumePoint } from '../feed/replay.ts';

/** The one subprotocol that is spoken and answered. */
export const SUBPROTOCOL = 'collab.v1';
const KEY_PREFIX = 'collab.key.';
const TOKEN_PREFIX = 'collab.token.';

/** An upgrade request, copied out of the core's own object, which is gone after the first await. */
export interface UpgradeRequest {
  /** Where the credentials are; `message`: still to come. */
  readonly carrier: 'headers' | 'subprotocol' | 'query' | 'message';
  /** Publishable key; '' for none. */
  readonly key: string;
  /** User token; '' for none. */
  readonly token: string;
  /** '' for none: not a browser. */
  readonly origin: string;
  readonly resume: ResumePoint | null;
  readonly offersProtocol: boolean;
  readonly socketKey: string;
  readonly extensions: string;
  /** All lines in order, joined by commas. */
  readonly forwardedFor: string;
  readonly forwardedProto: string;
  readonly host: string;
  /** The caller's, where it is well-formed; otherwise ''. */
  readonly requestId: string;
  /** Whether two readers could disagree on where it ends or whom it is for; no client sends a body or two hosts. */
  readonly ambiguous: boolean;
}

/** Reads an upgrade request. The first carrier that is present counts; the key may always come in the query. */
export function readUpgradeRequest(req: HttpRequest): UpgradeRequest {
  const headers = headersOf(req);
  const header = (name: string): string => headers.get(name) ?? '';
  // The core of Node 20 gives undefined, against its typings, where there is no question mark.
  const query = new URLSearchParams((req.getQuery() as string | undefined) ?? '');
  const protocols = header('sec-websocket-protocol').split(',').map((name) => name.trim());
  return {
    ...credentials(header('x-service-key'), header('x-service-token'), protocols, query),
    origin: header('origin'),
    resume: resumePoint(query.get('epoch'), wholeNumber(query.get('since'))),
    offersProtocol: protocols.includes(SUBPROTOCOL),
    socketKey: header('sec-websocket-key'),
    extensions: header('sec-websocket-extensions'),
    host: header('host'),
    forwardedFor: header('x-forwarded-for'),
    forwardedProto: header('x-forwarded-proto'),
    requestId: /^[A-Za-z0-9._-]{1,64}$/.test(header('x-request-id')) ? header('x-request-id') : '',
    ambiguous: headers.has('transfer-encoding') || (headers.get('content-length') ?? '0') !== '0' || header('host').includes(','),
  };
}

function headersOf(req: HttpRequest): Map<string, string> {
  const headers = new Map<string, string>();
  req.forEach((name, value) => {
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before},${value}`);
  });
  return headers;
}

type Credentials = Pick<UpgradeRequest, 'carrier' | 'key' | 'token'>;

function credentials(keyHeader: string, tokenHeader: string, protocols: readonly string[], query: URLSearchParams): Credentials {
  const queryKey = query.get('key') ?? '';
  if (keyHeader !== '' || tokenHeader !== '') return { carrier: 'headers', key: keyHeader || queryKey, token: tokenHeader };
  const key = afterPrefix(protocols, KEY_PREFIX);
  const token = afterPrefix(protocols, TOKEN_PREFIX);
  if (key !== '' || token !== '') return { carrier: 'subprotocol', key: key || queryKey, token };
  const queryToken = query.get('token') ?? '';
  return { carrier: queryToken === '' ? 'message' : 'query', key: queryKey, token: queryToken };
}

function afterPrefix(protocols: readonly string[], prefix: string): string {
  return protocols.find((name) => name.startsWith(prefix))?.slice(prefix.length) ?? '';
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
