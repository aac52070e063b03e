import { isCertificateError } from '../../../lib/certificate-error.ts';
import type { HttpAnswer } from './http-answer.ts';
import { textOf, unescapeXml } from './xml.ts';

/** Codes of answers after which the same request may succeed soon. */
const transientCodes: ReadonlySet<string> = new Set([
  'InternalError',
  'OperationAborted',
  'RequestTimeout',
  'ServiceUnavailable',
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
]);
const transientStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
/** Codes of answers that newer keys may not get. The answer to a `HEAD` has no code. */
const staleKeyCodes: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidToken',
  'TokenRefreshRequired',
  'HTTP 400',
  'HTTP 403',
]);
const fullCodes: ReadonlySet<string> = new Set([
  'InsufficientStorage',
  'QuotaExceeded',
  'QuotaExceededException',
  'XMinioAdminBucketQuotaExceeded',
  'XMinioStorageFull',
]);

/** An answer of the store that is no success. */
export class S3Failure extends Error {
  override readonly name = 'S3Failure';
  readonly status: number;
  /** Such as `NoSuchBucket`; by the status, such as `HTTP 404`, if the answer has none. */
  readonly code: string;
  /** The message of the store; empty if there is none. */
  readonly detail: string;
  /** The region that the store names. */
  readonly region: string | undefined;
  /** Milliseconds that the store wants to be left alone for; 0 if it does not say. */
  readonly retryAfterMs: number;

  constructor(answer: Pick<HttpAnswer, 'status' | 'headers' | 'body'>, what: string) {
    const xml = answer.body.toString('utf8', 0, 64 * 1024);
    const code = textOf(xml, 'Code') ?? `HTTP ${answer.status}`;
    const detail = oneLine(unescapeXml(textOf(xml, 'Message') ?? ''));
    super(`${what}: ${code}${detail === '' ? '' : ` (${detail})`}`);
    this.status = answer.status;
    this.code = oneLine(code);
    this.detail = detail;
    const region = answer.headers['x-amz-bucket-region'] ?? textOf(xml, 'Region');
    this.region = typeof region === 'string' && /^[\w-]{1,64}$/.test(region) ? region : undefined;
    const seconds = Number(answer.headers['retry-after'] ?? 0);
    this.retryAfterMs = seconds > 0 ? seconds * 1_000 : 0;
  }

  get isTransient(): boolean {
    return transientCodes.has(this.code) || (transientStatuses.has(this.status) && !this.isFull);
  }

  /** Whether newer keys may be accepted. */
  get hasStaleKeys(): boolean {
    return staleKeyCodes.has(this.code);
  }

  /** Whether the store has no space left, or the account has used up its quota. */
  get isFull(): boolean {
    return this.status === 507 || fullCodes.has(this.code);
  }

  get isMissing(): boolean {
    return this.status === 404 && this.code !== 'NoSuchBucket';
  }
}

/** No answer, or half of one: a connection that was refused or cut, or a bound of time that has passed. */
export class ConnectionFailure extends Error {
  override readonly name = 'ConnectionFailure';
  /** Of the system or of TLS, such as `ECONNREFUSED`. */
  readonly code: string;
  /** Whether the server had closed a kept connection: another one works. */
  readonly wasIdle: boolean;

  constructor(what: string, { code = '', wasIdle = false, cause }: ConnectionFailureFacts = {}) {
    super(oneLine(what), cause === undefined ? undefined : { cause });
    this.code = code;
    this.wasIdle = wasIdle;
  }
}

interface ConnectionFailureFacts {
  readonly code?: string;
  readonly wasIdle?: boolean;
  readonly cause?: unknown;
}

/** Whether an error of a connection means that TLS fails, mostly because a certificate is not trusted. */
export function isTlsFailure(code: string): boolean {
  return isCertificateError(code) || /CERT|^ERR_TLS|^ERR_SSL|EPROTO/.test(code);
}

/** At most 200 characters of a text of the store, without control characters. */
function oneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
