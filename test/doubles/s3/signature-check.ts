import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Keys that a server accepts. */
export interface AcceptedKeys {
  readonly id: string;
  readonly secret: string;
  /** Demanded of temporary keys. */
  readonly token?: string;
}

/** An answer of S3 that is an error. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message?: string;
  readonly extra?: string;
}

const SKEW_MS = 15 * 60_000;
const hmac = (key: Buffer | string, data: string): Buffer => createHmac('sha256', key).update(data, 'utf8').digest();

/**
 * Checks a request as "Authenticating Requests (AWS Signature Version 4)" of the manual of Amazon S3 says, from what was
 * received. Shares no code with the client. Returns the refusal; null if it is authentic.
 */
export function checkSignature(
  request: IncomingMessage,
  body: Buffer,
  { keys, region, now }: { keys: AcceptedKeys; region: string; now: number },
): Refusal | null {
  const header = (name: string): string => {
    const value = request.headers[name];
    return typeof value === 'string' ? value : '';
  };
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      header('authorization'),
    );
  if (match === null) return { status: 403, code: 'AccessDenied', message: 'no or another signature' };
  const [, id = '', day = '', scopeRegion = '', signedNames = '', signature = ''] = match;
  if (id !== keys.id) return { status: 403, code: 'InvalidAccessKeyId', message: 'unknown key' };
  if (scopeRegion !== region)
    return {
      status: 400,
      code: 'AuthorizationHeaderMalformed',
      message: `the region '${scopeRegion}' is wrong; expecting '${region}'`,
      extra: `<Region>${region}</Region>`,
    };
  if (keys.token !== undefined && header('x-amz-security-token') !== keys.token)
    return { status: 400, code: 'ExpiredToken', message: 'The provided token has expired.' };
  const names = signedNames.split(';');
  const mustBeSigned = ['host', ...Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'))];
  const unsigned = mustBeSigned.filter((name) => !names.includes(name));
  if (unsigned.length > 0) return { status: 403, code: 'AccessDenied', message: `not signed: ${unsigned.join(', ')}` };
  const stamp = header('x-amz-date');
  const time = Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (Number.isNaN(time) || !stamp.startsWith(day)) return { status: 403, code: 'AccessDenied', message: 'no date' };
  if (Math.abs(time - now) > SKEW_MS) return { status: 403, code: 'RequestTimeTooSkewed', message: 'clock' };
  const declared = header('x-amz-content-sha256');
  if (declared !== createHash('sha256').update(body).digest('hex'))
    return { status: 400, code: 'XAmzContentSHA256Mismatch', message: 'another body' };
  const [path = '', rawQuery = ''] = (request.url ?? '').split('?');
  const query = rawQuery === '' ? '' : rawQuery.split('&').sort().join('&');
  const lines = names.map((name) => `${name}:${header(name).trim()}\n`).join('');
  const canonical = `${request.method}\n${path}\n${query}\n${lines}\n${signedNames}\n${declared}`;
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = `AWS4-HMAC-SHA256\n${stamp}\n${scope}\n${createHash('sha256').update(canonical).digest('hex')}`;
  const key = hmac(hmac(hmac(hmac(`AWS4${keys.secret}`, day), region), 's3'), 'aws4_request');
  if (!timingSafeEqual(hmac(key, toSign), Buffer.from(signature, 'hex')))
    return { status: 403, code: 'SignatureDoesNotMatch', message: 'The request signature does not match.' };
  return null;
}
