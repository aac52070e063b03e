import { BlockList, isIP } from 'node:net';
import { BoundedMap } from '../bounded-map.ts';

/** Addresses whose answer is remembered: a look into a BlockList costs more than the rest of counting a request. */
const REMEMBERED = 4_096;

/** A set of networks in CIDR form, IPv4 and IPv6. */
export class Networks {
  readonly #list = new BlockList();
  readonly #empty: boolean;
  readonly #known = new BoundedMap<string, boolean>(REMEMBERED);

  /**
   * @param cidrs addresses with or without a prefix length: `10.0.0.0/8`, `::1`
   * @throws {Error} naming the first that is none
   */
  constructor(cidrs: readonly string[]) {
    this.#empty = cidrs.length === 0;
    for (const cidr of cidrs) this.#add(cidr);
  }

  /** Whether an address lies in one of them. Takes the form that `normaliseAddress` gives; anything else is in none. */
  has(address: string): boolean {
    if (this.#empty) return false;
    let known = this.#known.get(address);
    if (known === undefined) {
      const family = isIP(address);
      known = family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
      this.#known.set(address, known);
    }
    return known;
  }

  #add(cidr: string): void {
    const slash = cidr.indexOf('/');
    const address = slash < 0 ? cidr : cidr.slice(0, slash);
    const family = isIP(address);
    if (family === 0) throw new Error(`${cidr} is not an address or a network such as 10.0.0.0/8`);
    const widest = family === 4 ? 32 : 128;
    const bits = slash < 0 ? widest : Number(cidr.slice(slash + 1) || Number.NaN);
    if (!Number.isInteger(bits) || bits < 0 || bits > widest) throw new Error(`${cidr} must have a prefix length of 0 to ${widest}`);
    this.#list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6');
  }
}
