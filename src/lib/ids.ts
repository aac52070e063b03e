import { randomBytes, randomFillSync, randomInt } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** How many characters at the start of an id encode the time: 45 bits of milliseconds, enough until the year 3084. */
export const TIME_LENGTH = 9;
/** Values of the counter in an id, 15 bits; after the last one a new random part is drawn. */
const COUNTS = 32_768;

/**
 * Random bytes, generated in advance: a call of the generator costs more than an id. Those up to `unusedRandom` have
 * been used.
 */
const randomPool = new Uint8Array(1_024);
let unusedRandom = randomPool.length;

let lastMs = -1;
let timePart = '';
let randomPart = '';
let counter = 0;

/**
 * A new id: the prefix, then 20 characters of lower-case Crockford base 32: 45 bits of milliseconds, 40 random bits and
 * a 15-bit counter. Short because most keys of the store consist of ids; ordered by time so that new keys are appended.
 *
 * @param prefix names the kind of thing, with its underscore, e.g. `th_`
 * @param now milliseconds since the epoch
 */
export function newId(prefix: string, now: number): string {
  const count = nextCount(now);
  return prefix + timePart + randomPart + count;
}

/**
 * As `newId`, but with 55 random bits and no counter, so that nobody can guess one id from another of the same
 * millisecond.
 */
export function newUnguessableId(prefix: string, now: number): string {
  return prefix + timeKey(now) + randomBase32(11);
}

/** As `newId`, but 16 characters with 20 random bits: unique within one thread only. */
export function newShortId(prefix: string, now: number): string {
  const count = nextCount(now);
  return prefix + timePart + randomPart.slice(0, 4) + count;
}

/** A time encoded as at the start of an id; the texts sort as the times do. */
export function timeKey(now: number): string {
  return base32(now, TIME_LENGTH);
}

function nextCount(now: number): string {
  if (now !== lastMs || counter >= COUNTS) {
    lastMs = now;
    timePart = timeKey(now);
    randomPart = randomBase32(8);
    // If two processes started at the same count in the same millisecond, only the random bits would tell their ids
    // apart.
    counter = randomInt(COUNTS / 2);
  }
  return base32(counter++, 3);
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
  if (unusedRandom + length > randomPool.length) {
    randomFillSync(randomPool);
    unusedRandom = 0;
  }
  let text = '';
  for (const end = unusedRandom + length; unusedRandom < end; unusedRandom++)
    text += ALPHABET[(randomPool[unusedRandom] as number) & 31];
  return text;
}

/** A secret of `bytes` random bytes as base 62 text of a fixed length per size (32 bytes: 43 characters). */
export function randomSecret(bytes: number): string {
  let value = BigInt('0x' + randomBytes(bytes).toString('hex'));
  let text = '';
  for (let i = 0; i < Math.ceil((bytes * 8) / Math.log2(62)); i++) {
    text = BASE62[Number(value % 62n)] + text;
    value /= 62n;
  }
  return text;
}
