import { rateHeaders, rateLimited, type RateStatus } from '../../net/rate-status.ts';
import type { Header } from '../../net/response-headers.ts';
import type { RequestMeter } from './request-meter.ts';

/**
 * Adds the rate headers of a window, in which the request has been counted, to those of its response. Throws
 * `rate_limited` if the window does not allow the request.
 *
 * @param meter counts refusals; null while nothing is measured
 */
export function enforceRateLimit(
  window: RateStatus & { readonly allowed: boolean },
  headers: Header[],
  meter: RequestMeter | null,
): void {
  headers.push(...rateHeaders(window));
  if (window.allowed) return;
  meter?.limited(window.policy);
  throw rateLimited(window);
}
