import { countRequest } from '../../domain/quotas/count-request.ts';
import { CollabError } from '../../model/errors.ts';
import type { Header } from '../../net/response-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import { enforceRateLimit } from '../core/enforce-rate-limit.ts';
import type { KeyLookup } from './authentication.ts';
import type { Route } from './route.ts';
import type { ApiServices } from './services.ts';

/**
 * Counts a request against the limit of its key, if the key has one of its own, and otherwise against that of the
 * client's address. Adds the rate headers to `headers`. Throws `rate_limited`. Does nothing if the client has gone.
 */
export async function countAgainstLimit(
  services: ApiServices,
  exchange: Exchange,
  route: Route | null,
  key: KeyLookup,
  headers: Header[],
): Promise<void> {
  if (exchange.isFinished) return;
  const { ctx, config, proxies, meter } = services;
  const limit = key instanceof CollabError ? null : key.rateLimit;
  const window = await (key instanceof CollabError || limit === null || route?.rateLimit !== undefined
    ? countRequest(ctx, config, { kind: route?.rateLimit ?? 'address', address: proxies.clientAddress(exchange) })
    : countRequest(ctx, config, { kind: 'key', keyId: key.actor.keyId, limit }));
  enforceRateLimit(window, headers, meter);
}
