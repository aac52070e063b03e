import type { CoreRequest } from '../../net/core.ts';
import { RequestHead } from '../../net/request-head.ts';
import { isRequestId } from '../../net/request-id.ts';
import { type ResumePoint, resumePoint } from '../feed/resume-point.ts';

/** The only subprotocol that the server supports and answers. */
export const SUBPROTOCOL = 'collab.v1';
const KEY_PREFIX = 'collab.key.';
const TOKEN_PREFIX = 'collab.token.';

/** An upgrade request, copied from the core's request, which is invalid after the first await. */
export interface UpgradeRequest {
  /** Where the credentials are; `message`: they come in the first message. */
  readonly source: 'headers' | 'subprotocol' | 'query' | 'message';
  /** Publishable key; '' for none. */
  readonly key: string;
  /** User token; '' for none. */
  readonly token: string;
  /** '' for none: the client is not a browser. */
  readonly origin: string;
  readonly resume: ResumePoint | null;
  readonly offersProtocol: boolean;
  readonly socketKey: string;
  readonly extensions: string;
  /** All lines of the header in order, joined by commas. */
  readonly forwardedFor: string;
  readonly forwardedProto: string;
  readonly host: string;
  /** The `X-Request-Id` of the client if it is well-formed; otherwise ''. */
  readonly requestId: string;
  /**
   * Whether two HTTP parsers could disagree on where the request ends or on its host. No client sends a body or two
   * hosts.
   */
  readonly ambiguous: boolean;
}

/**
 * Reads an upgrade request. The first source of credentials that is present counts; the key may always come in the
 * query.
 */
export function readUpgradeRequest(req: CoreRequest): UpgradeRequest {
  const head = new RequestHead(req);
  const header = (name: string): string => joinedHeader(req, name);
  const query = new URLSearchParams(head.query);
  const protocols = header('sec-websocket-protocol')
    .split(',')
    .map((name) => name.trim());
  return {
    ...credentials(head.serviceKey, head.serviceToken, protocols, query),
    origin: head.origin,
    resume: resumePoint(query.get('epoch'), wholeNumber(query.get('since'))),
    offersProtocol: protocols.includes(SUBPROTOCOL),
    socketKey: header('sec-websocket-key'),
    extensions: header('sec-websocket-extensions'),
    host: head.host,
    forwardedFor: head.forwardedFor,
    forwardedProto: head.forwardedProto,
    requestId: isRequestId(head.requestId) ? head.requestId : '',
    ambiguous: head.ambiguous || head.hasBody,
  };
}

/** The values of all lines of a header in order, joined by commas; '' for none. */
function joinedHeader(req: CoreRequest, wanted: string): string {
  const values: string[] = [];
  req.forEach((name, value) => {
    if (name === wanted) values.push(value);
  });
  return values.join(',');
}

type Credentials = Pick<UpgradeRequest, 'source' | 'key' | 'token'>;

function credentials(
  keyHeader: string,
  tokenHeader: string,
  protocols: readonly string[],
  query: URLSearchParams,
): Credentials {
  const queryKey = query.get('key') ?? '';
  if (keyHeader !== '' || tokenHeader !== '')
    return { source: 'headers', key: keyHeader || queryKey, token: tokenHeader };
  const key = afterPrefix(protocols, KEY_PREFIX);
  const token = afterPrefix(protocols, TOKEN_PREFIX);
  if (key !== '' || token !== '') return { source: 'subprotocol', key: key || queryKey, token };
  const queryToken = query.get('token') ?? '';
  return { source: queryToken === '' ? 'message' : 'query', key: queryKey, token: queryToken };
}

function afterPrefix(protocols: readonly string[], prefix: string): string {
  return protocols.find((name) => name.startsWith(prefix))?.slice(prefix.length) ?? '';
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
