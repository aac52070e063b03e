import * as Type from 'typebox';

/** Bounds the length of a URL of an engine. */
const URL_CHARS = '[^\\s]{1,2000}';

/** The URL of an engine, with its password: never shown. */
const engineUrl = (schemes: readonly string[], example: string, description: string) =>
  Type.String({
    pattern: `^((${schemes.join('|')})://${URL_CHARS})?$`,
    title: `an address such as ${example}, or empty`,
    default: '',
    description,
    writeOnly: true,
  });

/** The options `store.*`. */
export const storeOptions = {
  url: engineUrl(
    ['postgres', 'postgresql'],
    'postgres://collab:secret@db.example.com/collab?sslmode=verify-full',
    'PostgreSQL (14 or later) for records and events, so that several nodes can share them; empty for the folder ' +
      '`store` in dataDir, which one server can use ([several machines](deploy/cluster.md)).',
  ),
  connections: Type.Integer({
    minimum: 2,
    maximum: 100,
    default: 4,
    description: 'Connections that each worker process keeps to PostgreSQL at most.',
  }),
};

/** The options `shared.*`. */
export const sharedOptions = {
  url: engineUrl(
    ['redis', 'rediss', 'valkey', 'valkeys'],
    'rediss://:secret@cache.example.com:6379/0',
    'Redis or Valkey (7 or later) for rate windows, presence and messages between nodes; empty for PostgreSQL if ' +
      'store.url is set, and for the folder `shared` in dataDir otherwise. Requires store.url.',
  ),
};

/** The options `blobs.*`. */
export const blobsOptions = {
  url: engineUrl(
    ['s3'],
    's3://bucket/prefix',
    'S3-compatible store for uploaded files; empty for the folder `files` in dataDir. Credentials come from the ' +
      'environment, files or the role of the machine, as with the tools of AWS.',
  ),
  endpoint: Type.String({
    pattern: '^(https?://[^\\s/?#@]{1,253})?$',
    title: 'an address such as https://s3.example.com, or empty',
    default: '',
    description: 'Address of the S3-compatible store; empty for AWS.',
  }),
  region: Type.String({ minLength: 1, maxLength: 64, default: 'us-east-1', description: 'Region of the bucket.' }),
  pathStyle: Type.Union([Type.Literal('auto'), Type.Literal(true), Type.Literal(false)], {
    default: 'auto',
    description:
      'Whether the bucket is part of the path (true) or of the host name (false) of a request; auto: of the path, ' +
      'unless blobs.endpoint is empty.',
  }),
};
