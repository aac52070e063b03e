import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { CollabError } from '../../model/errors.ts';
import type { Context } from '../context.ts';

/** The scrypt parameters of a hash, with `N = 2^ln`. */
interface Cost {
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

type PasswordContext = Pick<Context, 'passwordLn'>;

interface ParsedHash {
  readonly cost: Cost;
  readonly salt: Buffer;
  readonly key: Buffer;
}

/**
 * About 0.4 s of a server core and 128 MiB per hash, which is also what each guess costs an attacker with the hashes.
 */
const COST: Cost = { ln: 17, r: 8, p: 1 };
/** More than the 128 MiB that these parameters need; with Node's default limit scrypt would throw. */
const MAX_MEMORY = 256 * 1024 * 1024;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

const MIN_CHARACTERS = 12;
const MAX_BYTES = 1024;

const scryptAsync = promisify<string, Buffer, number, object, Buffer>(scrypt);

/**
 * Throws `invalid_request` unless the NFKC form of the password, which is what is hashed, has at least 12 characters
 * and at most 1 024 bytes.
 */
export function checkPassword(password: string): void {
  const text = password.normalize('NFKC');
  if (Array.from(text).length < MIN_CHARACTERS)
    throw new CollabError('invalid_request', `password must be at least ${MIN_CHARACTERS} characters`);
  if (Buffer.byteLength(text) > MAX_BYTES)
    throw new CollabError('invalid_request', `password must be at most ${MAX_BYTES} bytes`);
}

/** Hashes the password with a random salt, as `$scrypt$ln=17,r=8,p=1$salt$hash` (PHC string format). */
export async function hashPassword(ctx: PasswordContext, password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const cost = costOf(ctx);
  const key = await deriveKey(password, salt, cost);
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${unpadded(salt)}$${unpadded(key)}`;
}

/** Whether the hash is of this password. False for a null hash, after the same computing time. */
export async function passwordMatches(ctx: PasswordContext, password: string, hash: string | null): Promise<boolean> {
  if (hash === null) {
    await deriveKey(password, randomBytes(SALT_BYTES), costOf(ctx));
    return false;
  }
  const { cost, salt, key } = parseHash(hash);
  return timingSafeEqual(await deriveKey(password, salt, cost), key);
}

/** Whether the hash was made with lower cost parameters than today's. */
export function isOutdated(ctx: PasswordContext, hash: string): boolean {
  const { ln, r, p } = parseHash(hash).cost;
  const cost = costOf(ctx);
  return ln < cost.ln || r < cost.r || p < cost.p;
}

const costOf = ({ passwordLn = COST.ln }: PasswordContext): Cost => ({ ...COST, ln: passwordLn });

function deriveKey(password: string, salt: Buffer, { ln, r, p }: Cost): Promise<Buffer> {
  return scryptAsync(password.normalize('NFKC'), salt, KEY_BYTES, { N: 2 ** ln, r, p, maxmem: MAX_MEMORY });
}

function parseHash(hash: string): ParsedHash {
  const match = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/.exec(hash);
  if (match === null) throw new Error('the store holds a password hash of unknown form');
  const [, ln, r, p, salt = '', key = ''] = match;
  return {
    cost: { ln: Number(ln), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt, 'base64'),
    key: Buffer.from(key, 'base64'),
  };
}

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');
