import type { Context } from '../../domain/context.ts';
import { addressBlock } from '../../lib/addresses/client-address.ts';
import type { Logger } from '../../observability/log.ts';

/**
 * Counts `delta` among the sockets of an address that have not authenticated or were refused. Returns how many it has
 * over the whole cluster.
 */
export function countUnauthenticated(
  { shared }: Context,
  owner: string,
  address: string,
  delta: number,
): Promise<number> {
  return shared.count(keyOf(address), owner, delta);
}

/**
 * The sockets that this worker has refused and whose connections may still be open: a client can ignore the close
 * frame. Each counts among the unauthenticated sockets of its address for as long as the core then keeps a connection.
 */
export class RefusedSockets {
  readonly #ctx: Context;
  readonly #owner: string;
  readonly #most: number;
  readonly #lingerMs: number;
  readonly #log: Logger;
  /** In the order in which they end. */
  readonly #sockets = new Set<{ readonly address: string; readonly until: number }>();

  /**
   * @param limit most unauthenticated sockets of one address
   * @param lingerMs as `CoreApp.lingerMs`
   */
  constructor(ctx: Context, owner: string, limit: number, lingerMs: number, log: Logger) {
    this.#ctx = ctx;
    this.#owner = owner;
    this.#most = limit * 2;
    this.#lingerMs = lingerMs;
    this.#log = log;
  }

  /**
   * Whether an address may have one more socket that is opened only to tell its client why it is refused: up to twice
   * the limit.
   */
  async admits(address: string): Promise<boolean> {
    return (await this.#ctx.shared.total(keyOf(address))) < this.#most;
  }

  /** Counts a socket that was refused. */
  add(address: string): void {
    this.#sockets.add({ address, until: this.#ctx.clock.monotonic() + this.#lingerMs });
    this.#count(address, 1);
  }

  /** Counts all sockets in a new lease of this worker. */
  async countAgain(): Promise<void> {
    const addresses = [...this.#sockets].map(({ address }) => address);
    await Promise.all(addresses.map((address) => countUnauthenticated(this.#ctx, this.#owner, address, 1)));
  }

  /** Stops counting the sockets whose connections are closed by `now`, which is `Clock.monotonic`. */
  expire(now: number): void {
    for (const socket of this.#sockets) {
      if (socket.until > now) return;
      this.#sockets.delete(socket);
      this.#count(socket.address, -1);
    }
  }

  #count(address: string, delta: number): void {
    countUnauthenticated(this.#ctx, this.#owner, address, delta).catch((error: unknown) => {
      this.#log.warn(
        { err: error },
        'a refused WebSocket could not be counted: the count of its address is wrong until this worker ends',
      );
    });
  }
}

const keyOf = (address: string): string => `pending-sockets/${addressBlock(address)}`;
