import { LEASE_MS } from '../../ports/shared.ts';
import { announceNode } from '../../domain/nodes.ts';
import { adjustSocketCount } from '../../domain/users/online.ts';
import type { Services } from '../services.ts';

/**
 * How often a worker renews its lease, in milliseconds: three renewals in a row may fail or come late before it ends.
 */
const RENEW_MS = LEASE_MS / 4;

/**
 * The lease of what this worker has in shared memory: the counts of its sockets, and the memberships of its connections.
 * A worker that was stopped or too busy for longer than the lease lasts has none of it left. Its sockets may be open
 * still, so it begins another lease and writes everything again.
 */
export class SharedLease {
  readonly #services: Services;
  #renewedAt: number;
  #isRenewing = false;

  /** Begins the lease. */
  constructor(services: Services) {
    this.#services = services;
    this.#renewedAt = services.ctx.clock.monotonic();
    this.#begin().catch((error: unknown) => this.#warn(error));
  }

  /** Renews the lease if that is due, or the memory asks for it. `now` is `Clock.monotonic`. */
  tick(now: number): void {
    if (this.#isRenewing) return;
    const isDue = now - this.#renewedAt >= RENEW_MS;
    if (!isDue && this.#services.ctx.shared.wantsRenewal?.() !== true) return;
    this.#renewedAt = now;
    this.#isRenewing = true;
    this.#renew()
      .catch((error: unknown) => this.#warn(error))
      .finally(() => (this.#isRenewing = false));
  }

  async #renew(): Promise<void> {
    const { ctx, owner, log } = this.#services;
    const wasPartial = ctx.shared.isPartial?.() ?? false;
    if (await ctx.shared.renewLease(owner)) return;
    if (ctx.shared.isPartial?.() ?? false)
      log.warn(
        'shared memory cannot be reached: until it can be, this worker shows its own users as present only, counts its ' +
          'own sockets only, and allows its share of each rate limit',
      );
    else if (wasPartial) log.warn('shared memory can be reached again: this worker uses it as before');
    else
      log.warn(
        `this worker had no lease in shared memory any more, which lasts ${LEASE_MS / 1_000} s, as after it was ` +
          'stopped, very busy or cut off: meanwhile its users may not have been shown as present, nor its sockets ' +
          'counted. Both are again',
      );
    await this.#begin();
  }

  /** Begins a lease and writes everything that is there at this moment: later calls change it, earlier ones do not. */
  async #begin(): Promise<void> {
    const { ctx, owner, node, connections, pendingSockets, refusedSockets, rooms } = this.#services;
    const writes: Promise<unknown>[] = [ctx.shared.beginLease(owner)];
    for (const { counted, feed, userId, countedKeyId } of connections.all())
      if (counted) writes.push(adjustSocketCount(ctx, feed.environment, userId, countedKeyId, owner, 1));
    if (node !== undefined) writes.push(announceNode(ctx, owner, node));
    writes.push(pendingSockets.countAgain(), refusedSockets.countAgain(), rooms.writeAgain());
    await Promise.all(writes);
  }

  #warn(error: unknown): void {
    this.#services.log.warn(
      { err: error },
      'the lease of this worker in shared memory could not be renewed: if it ends, users are not shown as present and ' +
        'sockets not counted until it can be',
    );
  }
}
