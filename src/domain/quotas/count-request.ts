import { addressBlock, normaliseAddress } from '../../lib/addresses/client-address.ts';
import { Networks } from '../../lib/addresses/networks.ts';
import type { RateLimitResult } from '../../ports/shared.ts';
import type { Context } from '../context.ts';

/** The part of the configuration that this needs. */
export interface RateLimitConfig {
  readonly rateLimit: { readonly perMinute: number; readonly files: number; readonly exempt: readonly string[] };
}

/**
 * What a request is counted for: the client's address, by kind of request, or a key with a limit of its own (0:
 * unlimited).
 */
export type RequestSource =
  | { readonly kind: 'address' | 'login' | 'files'; readonly address: string }
  | { readonly kind: 'key'; readonly keyId: string; readonly limit: number };

/**
 * The state of a rate window, with its name and limit. A limit of 0 means that nothing was counted and everything is
 * allowed.
 */
export type CountedWindow = RateLimitResult & {
  readonly policy: 'default' | 'login' | 'files';
  readonly limit: number;
};

const WINDOW_MS = 60_000;
/** Login attempts per address and minute. No setting changes this. */
const LOGINS_PER_MINUTE = 5;
const UNLIMITED: Promise<CountedWindow> = Promise.resolve({
  allowed: true,
  remaining: Number.MAX_SAFE_INTEGER,
  resetMs: 0,
  policy: 'default',
  limit: 0,
});

const exemptions = new WeakMap<readonly string[], Networks>();

/**
 * Counts a request in the sliding minute of its source, over all workers. IPv6 clients are counted by /64. Addresses in
 * `rateLimit.exempt` and keys with the limit 0 are not counted. Files and logins have separate windows; logins are
 * always counted.
 */
export function countRequest(ctx: Context, config: RateLimitConfig, source: RequestSource): Promise<CountedWindow> {
  if (source.kind === 'key')
    return source.limit === 0 ? UNLIMITED : countIn(ctx, 'default', `rate/k/${source.keyId}`, source.limit);
  const address = normaliseAddress(source.address) ?? source.address;
  if (source.kind === 'login') return countIn(ctx, 'login', `rate/l/${addressBlock(address)}`, LOGINS_PER_MINUTE);
  if (exemptNetworks(config).has(address)) return UNLIMITED;
  if (source.kind === 'files') return countIn(ctx, 'files', `rate/f/${addressBlock(address)}`, config.rateLimit.files);
  return countIn(ctx, 'default', `rate/a/${addressBlock(address)}`, config.rateLimit.perMinute);
}

async function countIn(
  ctx: Context,
  policy: CountedWindow['policy'],
  key: string,
  limit: number,
): Promise<CountedWindow> {
  const { allowed, remaining, resetMs } = await ctx.shared.hit(key, limit, WINDOW_MS);
  return { allowed, remaining, resetMs, policy, limit };
}

function exemptNetworks({ rateLimit }: RateLimitConfig): Networks {
  let networks = exemptions.get(rateLimit.exempt);
  if (networks === undefined) {
    networks = new Networks(rateLimit.exempt);
    exemptions.set(rateLimit.exempt, networks);
  }
  return networks;
}
