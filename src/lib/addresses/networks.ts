import { BlockList, isIP } from 'node:net';
import { BoundedMap } from '../bounded-map.ts';
import { parseNetwork } from './parse-address.ts';

/**
 * How many addresses have their result cached: a lookup in a BlockList costs more than the rest of counting a request.
 */
const CACHED_ADDRESSES = 4_096;

/** A set of networks in CIDR form, IPv4 and IPv6. */
export class Networks {
  readonly #list = new BlockList();
  readonly #empty: boolean;
  readonly #cache = new BoundedMap<string, boolean>(CACHED_ADDRESSES);

  /**
   * @param cidrs addresses with or without a prefix length: `10.0.0.0/8`, `::1`
   * @throws {Error} naming the first that is not valid
   */
  constructor(cidrs: readonly string[]) {
    this.#empty = cidrs.length === 0;
    for (const cidr of cidrs) {
      const network = parseNetwork(cidr);
      if (network === null) throw new Error(`${cidr} is not an address or a network such as 10.0.0.0/8`);
      const [address, bits] = network;
      this.#list.addSubnet(address.toString(), bits, address.kind());
    }
  }

  /** Whether an address is in one of the networks. Takes the form of `normaliseAddress`; false for anything else. */
  has(address: string): boolean {
    if (this.#empty) return false;
    let found = this.#cache.get(address);
    if (found === undefined) {
      const family = isIP(address);
      found = family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
      this.#cache.set(address, found);
    }
    return found;
  }
}
