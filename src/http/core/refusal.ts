import { CollabError, publicError } from '../../model/errors.ts';
import { type Header, refusalBody, refusalHeaders } from '../../net/response-headers.ts';
import type { Logger } from '../../observability/log.ts';
import { jsonHead } from './content-headers.ts';
import type { Exchange } from './exchange.ts';

/**
 * Answers with the refusal that `publicError` makes of what was thrown. Whatever is not the client's mistake is logged with
 * the request id, internal errors with their stack.
 *
 * @param headers headers of the answer besides those of the refusal
 */
export function answerFailure(log: Logger, exchange: Exchange, thrown: unknown, headers: readonly Header[]): void {
  const refusal = publicError(thrown);
  const { status, level } = refusal.kind;
  if (refusal.code === 'internal') log.error({ requestId: exchange.id, route: exchange.route, err: thrown }, 'request failed');
  else if (level !== 'debug') log[level]({ requestId: exchange.id, route: exchange.route, code: refusal.code }, refusal.message);

  const all: Header[] = [jsonHead, ...headers, ...refusalHeaders(refusal)];
  if (status === 401) all.push(['WWW-Authenticate', 'Bearer']);
  exchange.send(status, all, refusalBody(refusal));
}

/** The refusal of a request whose path and method no route has. */
export function routeNotFound(): CollabError {
  return new CollabError('route_not_found', 'Nothing is served at this path with this method');
}
