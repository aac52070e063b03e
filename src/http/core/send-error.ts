import { formatValue } from '../../lib/format-value.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import { type Header, problemBody, refusalBody, refusalHeaders } from '../../net/response-headers.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Logger } from '../../observability/log.ts';
import { acceptEntries } from './accepted.ts';
import { jsonHead, problemHead } from './content-headers.ts';
import type { Exchange } from './exchange.ts';

/**
 * Answers with the refusal that `publicError` makes of what was thrown, as problem details (RFC 9457) if the client
 * asks for them. Whatever is not the client's mistake is logged with the request id, internal errors with their stack.
 *
 * @param headers headers of the response besides those of the refusal
 */
export function sendError(log: Logger, exchange: Exchange, thrown: unknown, headers: readonly Header[]): void {
  const refusal = publicError(thrown);
  const { status, level } = refusal.kind;
  if (refusal.code === 'internal')
    log.error({ requestId: exchange.id, route: exchange.route, err: thrown }, 'request failed');
  else if (level !== 'debug')
    log[level]({ requestId: exchange.id, route: exchange.route, code: refusal.code }, refusal.message);

  const asProblem = acceptsProblem(exchange.head.accept);
  const all: Header[] = [asProblem ? problemHead : jsonHead, ...headers, ...refusalHeaders(refusal)];
  if (status === 401) all.push(['WWW-Authenticate', 'Bearer']);
  exchange.send(status, all, asProblem ? problemBody(refusal, exchange.id) : refusalBody(refusal));
}

function acceptsProblem(accept: string): boolean {
  return (
    /problem\+json/i.test(accept) &&
    acceptEntries(accept).some(({ name, isAccepted }) => isAccepted && name === 'application/problem+json')
  );
}

/**
 * The refusal of a request whose path and method no route has.
 *
 * @param methods those that are served at the path
 */
export function routeNotFound(
  { method, path }: Pick<RequestHead, 'method' | 'path'>,
  methods: readonly string[] = [],
): CollabError {
  const served = methods.length === 0 ? '' : `; it takes ${methods.join(', ')}`;
  // The response to HEAD has the length of the one to GET.
  return new CollabError(
    'route_not_found',
    `Nothing is served at this path with this method: ${formatValue(`${method === 'HEAD' ? 'GET' : method} ${path}`)}${served}`,
  );
}
