import { createHash, createHmac } from 'node:crypto';

/** The keys that sign a request. */
export interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary keys. */
  readonly sessionToken?: string | undefined;
}

/** What a signature covers. */
export interface Signable {
  readonly method: string;
  /** Encoded by `encodePath`. */
  readonly path: string;
  /** Not encoded. */
  readonly query: Readonly<Record<string, string>>;
  /** By name in lower case; with `host`. All of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
  /** The SHA-256 of the body, hex. */
  readonly bodySha256: string;
}

/** The SHA-256 of an empty body. */
export const EMPTY_SHA256 = createHash('sha256').digest('hex');

const ALGORITHM = 'AWS4-HMAC-SHA256';

/**
 * Signs a request to S3 with Signature Version 4. Returns the headers to send: those of the request and
 * `x-amz-date`, `x-amz-content-sha256`, `x-amz-security-token` and `authorization`.
 *
 * @param now milliseconds since the epoch
 */
export function signedHeaders(request: Signable, keys: Keys, region: string, now: number): Record<string, string> {
  const time = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const date = time.slice(0, 8);
  const headers: Record<string, string> = {
    ...request.headers,
    'x-amz-content-sha256': request.bodySha256,
    'x-amz-date': time,
    ...(keys.sessionToken === undefined ? {} : { 'x-amz-security-token': keys.sessionToken }),
  };
  const names = Object.keys(headers).sort();
  const signed = names.join(';');
  const canonical = [
    request.method,
    request.path,
    encodeQuery(request.query),
    ...names.map((name) => `${name}:${(headers[name] ?? '').trim().replaceAll(/ +/g, ' ')}`),
    '',
    signed,
    request.bodySha256,
  ].join('\n');
  const scope = `${date}/${region}/s3/aws4_request`;
  const text = [ALGORITHM, time, scope, sha256(canonical)].join('\n');
  const signature = createHmac('sha256', signingKey(keys.secretAccessKey, date, region))
    .update(text)
    .digest('hex');
  headers['authorization'] =
    `${ALGORITHM} Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
  return headers;
}

/** Encodes a key as the path of a request: all bytes except unreserved ones and slashes. */
export function encodePath(key: string): string {
  return key.split('/').map(encode).join('/');
}

/** The query of a request, in the order in which it is signed; parameters without a value end in `=`. */
export function encodeQuery(query: Readonly<Record<string, string>>): string {
  return Object.keys(query)
    .map((name) => `${encode(name)}=${encode(query[name] ?? '')}`)
    .sort()
    .join('&');
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The last signing key: it depends on the secret, the day and the region only. */
let last: { readonly of: string; readonly key: Buffer } = { of: '', key: Buffer.alloc(0) };

function signingKey(secret: string, date: string, region: string): Buffer {
  const of = `${secret}\n${date}\n${region}`;
  if (last.of !== of) {
    let key: Buffer = Buffer.from(`AWS4${secret}`);
    for (const part of [date, region, 's3', 'aws4_request']) key = createHmac('sha256', key).update(part).digest();
    last = { of, key };
  }
  return last.key;
}
