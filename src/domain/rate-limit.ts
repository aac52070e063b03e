import { addressBlock, normaliseAddress } from '../lib/client-address.ts';
import { Networks } from '../lib/networks.ts';
import type { RateWindow } from '../ports/shared.ts';
import type { Context } from './context.ts';

/** The part of the configuration that this needs. */
export interface RateLimitConfig {
  readonly rateLimit: { readonly perMinute: number; readonly exempt: readonly string[] };
}

/** Whom a request is counted on: the address of the client, or a key with a limit of its own (0: unlimited). */
export type RateSubject =
  | { readonly kind: 'address'; readonly address: string }
  | { readonly kind: 'key'; readonly keyId: string; readonly limit: number };

/** A window and the limit it was counted against. A limit of 0 means that nothing was counted and all is allowed. */
export type CountedWindow = RateWindow & { readonly limit: number };

const WINDOW_MS = 60_000;
const UNLIMITED: CountedWindow = { allowed: true, remaining: Number.MAX_SAFE_INTEGER, resetMs: 0, limit: 0 };

const exemptions = new WeakMap<readonly string[], Networks>();

/**
 * Counts a request in the sliding minute of its subject, over all workers (decisions §8). An IPv6 client is counted as
 * its /64; addresses in `rateLimit.exempt` and keys with the limit 0 are not counted.
 */
export function countRequest(ctx: Context, config: RateLimitConfig, subject: RateSubject): CountedWindow {
  if (subject.kind === 'key') return subject.limit === 0 ? UNLIMITED : counted(ctx, `rate/k/${subject.keyId}`, subject.limit);
  const address = normaliseAddress(subject.address) ?? subject.address;
  if (exemptNetworks(config).has(address)) return UNLIMITED;
  return counted(ctx, `rate/a/${addressBlock(address)}`, config.rateLimit.perMinute);
}

function counted(ctx: Context, key: string, limit: number): CountedWindow {
  return { ...ctx.shared.hit(key, limit, WINDOW_MS, ctx.clock.now()), limit };
}

function exemptNetworks({ rateLimit }: RateLimitConfig): Networks {
  let networks = exemptions.get(rateLimit.exempt);
  if (networks === undefined) {
    networks = new Networks(rateLimit.exempt);
    exemptions.set(rateLimit.exempt, networks);
  }
  return networks;
}
