import { EngineError } from '../../ports/engine-error.ts';
import type { Endpoint } from './client/exchange.ts';

/** Where the blobs are, as configured. */
export interface S3Options {
  /** `s3://bucket` or `s3://bucket/prefix`. */
  readonly url: string;
  /** The URL of the store; empty for Amazon S3. */
  readonly endpoint: string;
  /** Empty for the one of the environment (`AWS_REGION`, `AWS_DEFAULT_REGION`) or profile, and else `us-east-1`. */
  readonly region: string;
  /**
   * Whether the bucket is in the path and not in the name of the host. `auto`: with an endpoint, or if the name of the
   * bucket has a dot, which certificates for its host do not cover.
   */
  readonly pathStyle: 'auto' | boolean;
}

/** Where the blobs are, and how requests get there. */
export interface S3Location {
  readonly bucket: string;
  /** Of every key: empty, or ends with a slash. */
  readonly prefix: string;
  readonly region: string;
  readonly endpoint: Endpoint;
  /** The header `Host`. */
  readonly host: string;
  /** What the path of each request begins with. */
  readonly basePath: string;
}

/**
 * Reads the options. Throws an `EngineError` that no retry mends if they are invalid.
 *
 * @param defaultRegion of the environment or profile
 */
export function locationOf(options: S3Options, defaultRegion: string | undefined): S3Location {
  const { bucket, prefix } = bucketOf(options.url);
  const region = options.region === '' ? (defaultRegion ?? 'us-east-1') : options.region;
  if (!/^[\w-]{1,64}$/.test(region)) throw refusal(`blobs.region must be the name of a region, such as eu-central-1`);
  const url = endpointOf(options.endpoint === '' ? amazonEndpoint(region) : options.endpoint);
  const isPath = options.pathStyle === 'auto' ? options.endpoint !== '' || bucket.includes('.') : options.pathStyle;
  const secure = url.protocol === 'https:';
  const hostname = isPath ? url.hostname : `${bucket}.${url.hostname}`;
  const folder = url.pathname.replace(/\/+$/, '');
  return {
    bucket,
    prefix,
    region,
    endpoint: {
      secure,
      // An IPv6 address is in brackets in a URL, and not in a call of `connect`.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    },
    host: url.port === '' ? hostname : `${hostname}:${url.port}`,
    basePath: isPath ? `${folder}/${bucket}/` : `${folder}/`,
  };
}

function bucketOf(text: string): { bucket: string; prefix: string } {
  const match = /^s3:\/\/([^/?#@]*)(?:\/([^?#]*))?$/.exec(text);
  if (match === null)
    throw refusal(
      text.includes('@')
        ? 'must be s3://bucket or s3://bucket/prefix without keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
        : 'must be s3://bucket or s3://bucket/prefix',
    );
  const [, bucket = '', folder = ''] = match;
  if (!/^[a-z0-9A-Z][\w.-]{1,253}[a-z0-9A-Z]$/.test(bucket))
    throw refusal('the name of the bucket must have 3 to 255 letters, digits, dots and hyphens');
  const names = folder.split('/').filter((name) => name !== '');
  if (!names.every((name) => /^[\w!'()*.+=,:@~-]{1,128}$/.test(name) && name !== '.' && name !== '..'))
    throw refusal("the prefix must consist of letters, digits and -_.!~*'()+=,:@ between slashes");
  const prefix = names.map((name) => `${name}/`).join('');
  if (prefix.length > 256) throw refusal(`the prefix must have at most 256 characters, not ${prefix.length}`);
  return { bucket, prefix };
}

function endpointOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '')
    throw refusal('blobs.endpoint must be a URL with https or http, such as https://s3.example.com');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw refusal(
      'blobs.endpoint must have no user, query or fragment: keys go to AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  return url;
}

function amazonEndpoint(region: string): string {
  return `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}

function refusal(message: string): EngineError {
  return new EngineError('blobs.url', message, { retry: false });
}
