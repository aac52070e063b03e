import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

let lastMs = -1;
let timePart = '';
let randomPart = '';
let counter = 0;

/**
 * A new id: the prefix, then 26 characters in the layout of a ULID (48 bits of milliseconds, 80 bits of chance and
 * count) in lower-case Crockford base 32. Ids of one process sort in the order they were made within a millisecond too.
 *
 * @param prefix what kind of thing it names, with its underscore, e.g. `cm_`
 * @param now milliseconds since the epoch
 */
export function newId(prefix: string, now: number): string {
  const count = nextCount(now);
  return prefix + timePart + randomPart + count;
}

/**
 * As `newId`, with 30 bits of chance instead of 60: 20 characters, unique within one thread but not within everything.
 */
export function newShortId(prefix: string, now: number): string {
  const count = nextCount(now);
  return prefix + timePart + randomPart.slice(0, 6) + count;
}

/** The time in an id: its first ten characters after the prefix, as milliseconds since the epoch. */
export function timeOfId(unprefixed: string): number {
  let ms = 0;
  for (let i = 0; i < 10; i++) ms = ms * 32 + ALPHABET.indexOf(unprefixed.charAt(i));
  return ms;
}

function nextCount(now: number): string {
  if (now !== lastMs || counter >= 0xfffff) {
    lastMs = now;
    timePart = base32(now, 10);
    randomPart = randomBase32(12);
    counter = 0;
  }
  return base32(counter++, 4);
}

function base32(value: number, length: number): string {
  let text = '';
  for (let left = value, i = 0; i < length; i++) {
    text = ALPHABET[left % 32] + text;
    left = Math.floor(left / 32);
  }
  return text;
}

function randomBase32(length: number): string {
  let text = '';
  for (const byte of randomBytes(length)) text += ALPHABET[byte & 31];
  return text;
}

/** A secret of `bytes` random bytes as base 62 text, of a fixed length per size (32 bytes: 43 characters). */
export function randomSecret(bytes: number): string {
  let value = BigInt('0x' + randomBytes(bytes).toString('hex'));
  let text = '';
  for (let i = 0; i < Math.ceil((bytes * 8) / Math.log2(62)); i++) {
    text = BASE62[Number(value % 62n)] + text;
    value /= 62n;
  }
  return text;
}
