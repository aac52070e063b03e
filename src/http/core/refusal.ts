import { publicError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { jsonHead } from '../api/answer.ts';
import type { Exchange, Header } from './exchange.ts';

/**
 * Answers with what was thrown, as far as the caller may see it: the body holds the message alone, the code is in
 * `X-Error-Code`. What is more than a caller's mistake is logged under the request's id, faults of our own with their stack.
 */
export function answerFailure(log: Logger, exchange: Exchange, thrown: unknown, headers: readonly Header[]): void {
  const refusal = publicError(thrown);
  const { status, level } = refusal.kind;
  if (refusal.code === 'internal') log.error({ requestId: exchange.id, route: exchange.route, err: thrown }, 'request failed');
  else if (level !== 'debug') log[level]({ requestId: exchange.id, route: exchange.route, code: refusal.code }, refusal.message);

  const all: Header[] = [jsonHead, ...headers, ['X-Error-Code', refusal.code]];
  if (refusal.retryAfter !== undefined) all.push(['Retry-After', String(refusal.retryAfter)]);
  if (status === 401) all.push(['WWW-Authenticate', 'Bearer']);
  exchange.send(status, all, JSON.stringify({ error: refusal.message }));
}
