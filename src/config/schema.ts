import Type, { type Static } from 'typebox';

const group = <T extends Parameters<typeof Type.Object>[0]>(description: string, properties: T) =>
  Type.Object(properties, { description, additionalProperties: false });

const whole = (minimum: number, maximum: number, fallback: number, description: string) =>
  Type.Integer({ minimum, maximum, default: fallback, description });

const flag = (fallback: boolean, description: string) => Type.Boolean({ default: fallback, description });

const networks = (description: string) =>
  Type.Array(Type.String({ format: 'cidr' }), { default: [], description });

const texts = (pattern: string, what: string, description: string, more: { writeOnly?: true } = {}) =>
  Type.Array(Type.String({ pattern, description: what }), { default: [], description, ...more });

/**
 * Every option of the server: its place in config.json, its default, its bounds and what it does. All else is made from
 * this: the names of environment variables and flags, config.example.json, the table in docs/configuration.md and
 * the words of every refusal.
 */
export const ConfigSchema = group('The configuration of a Collab server.', {
  host: Type.String({
    minLength: 1,
    maxLength: 253,
    default: '127.0.0.1',
    description: 'Address to listen on. 127.0.0.1 is reached from this machine alone; 0.0.0.0 from everywhere: then put a proxy with TLS in front.',
  }),
  port: whole(0, 65_535, 8787, 'Port to listen on; 0 lets the system choose one.'),
  workers: Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal('auto')], {
    default: 'auto',
    description: 'Web worker processes; auto is one per processor.',
  }),
  workerTimeoutSeconds: whole(0, 3_600, 10, 'Seconds without an answer after which a worker process counts as hung: it is killed and replaced; 0 for never, such as under a debugger.'),
  dataDir: Type.String({
    minLength: 1,
    maxLength: 4096,
    default: './data',
    description: 'Folder of the store and the files, on a local disk; relative to the folder of config.json.',
  }),
  publicUrl: Type.String({
    pattern: '^(https?://[^\\s/?#@]{1,253}(/[^\\s?#]{0,512}[^\\s?#/])?)?$',
    title: 'an address such as https://comments.example.com without a slash at its end, or empty',
    default: '',
    description: 'Address of the server as clients know it; the URLs of files begin with it. Empty takes the address that each request or socket was sent to (Host), for its own answers.',
  }),
  demo: flag(false, 'Serves the demo page at /, which lets everyone who can open it write to the environment `default`. Never on a public server.'),
  docs: flag(true, 'Serves the API reference at /docs, for everyone who can open it; the document that it shows is at /api/v1/openapi.json in any case.'),
  log: group('The log, one JSON object a line on standard output; on standard error with `start --json`.', {
    level: Type.Union(
      [
        Type.Literal('trace'),
        Type.Literal('debug'),
        Type.Literal('info'),
        Type.Literal('warn'),
        Type.Literal('error'),
        Type.Literal('fatal'),
        Type.Literal('silent'),
      ],
      { default: 'info', description: 'Least weight that is logged; debug adds one line per request.' },
    ),
  }),
  trustProxy: networks('Networks of your own proxies (CIDR). Only requests from them have their X-Forwarded-For believed.'),
  rateLimit: group('The limit on requests, over all workers together.', {
    perMinute: whole(1, 1_000_000, 100, 'Requests allowed in any 60 seconds per client address.'),
    files: whole(1, 1_000_000, 600, 'The same for files and thumbnails, which are counted apart.'),
    exempt: networks('Networks that are never limited (CIDR), such as the backend’s own.'),
  }),
  ws: group('WebSocket connections.', {
    allowQueryToken: flag(false, 'Accepts the user token in the query string too. It then stands in the access logs of every proxy.'),
    heartbeatSeconds: whole(1, 50, 25, 'Silence in seconds after which the server sends a ping.'),
    maxConnectionsPerUser: whole(1, 10_000, 20, 'Sockets that one user may hold open.'),
    maxUnauthenticatedPerIp: whole(1, 10_000, 20, 'Sockets of one address that may be open and not yet authenticated.'),
    messagesPerSecond: whole(1, 100_000, 50, 'Messages that one socket may send per second, on the long run.'),
    messageBurst: whole(1, 100_000, 100, 'Messages that one socket may send at once after a pause.'),
    maxBackpressureBytes: whole(65_536, 268_435_456, 1_048_576, 'Bytes kept for a slow socket; past this it is closed (1013) and resumes by position.'),
  }),
  shutdown: group('What happens between SIGTERM and the end.', {
    drainSeconds: whole(1, 600, 10, 'Seconds after which requests that still run are given up.'),
    closeSpreadSeconds: whole(0, 600, 5, 'Seconds over which the sockets are closed, so that clients don’t all come back at once.'),
  }),
  events: group('The log of events, by which clients resume.', {
    retentionHours: whole(1, 8_760, 24, 'Hours for which every event is kept.'),
    retentionCount: whole(1_000, 100_000_000, 10_000, 'Latest events that are kept per environment, however old.'),
  }),
  crdt: group('The shared (CRDT) state of rooms.', {
    mergeSecondsPerMinute: whole(0, 3_600, 10, 'Seconds of a minute in which Yjs documents are merged and compared for one user, or one secret key, over all workers; 0 for no limit.'),
  }),
  uploads: group('Uploads of files.', {
    megapixelsPerMinute: whole(0, 1_000_000, 1_000, 'Megapixels of PNG, GIF and WebP images, which are decoded when they come, that one user may upload in a minute, over all workers: 20 of the largest images; 0 for no limit.'),
  }),
  turn: group('TURN and STUN servers, by which browsers reach each other for peer-to-peer sync; such as coturn with `use-auth-secret`.', {
    urls: texts(
      '^turns?:[^\\s/?@,]{1,255}(\\?transport=(udp|tcp))?$',
      'addresses such as turn:turn.example.com:3478?transport=udp',
      'TURN servers that browsers are given, with credentials that the server makes.',
    ),
    stunUrls: texts('^stuns?:[^\\s/?@,]{1,255}$', 'addresses such as stun:turn.example.com:3478', 'STUN servers that browsers are given.'),
    secret: texts(
      '^[^\\s,]{1,256}$',
      'secrets of 1 to 256 characters without white space and commas',
      'Secrets shared with the TURN servers (`static-auth-secret`). The first one signs; to change it, give the servers the new one first.',
      { writeOnly: true },
    ),
  }),
  metrics: group('Measurements for Prometheus, at /metrics on a listener of their own.', {
    port: whole(0, 65_535, 0, 'Port of the listener, by convention 9464; 0 for none.'),
    host: Type.String({
      minLength: 1,
      maxLength: 253,
      default: '127.0.0.1',
      description: 'Address of the listener. Say who may read it with metrics.token, or with a firewall, before it is any but 127.0.0.1.',
    }),
    token: Type.String({
      minLength: 0,
      maxLength: 512,
      default: '',
      description: 'Who asks must send `Authorization: Bearer` and this; empty for everybody.',
      writeOnly: true,
    }),
  }),
  storage: group('The disk.', {
    minFreeMb: whole(0, 1_048_576, 256, 'Free space in megabytes below which writes are refused and reads go on.'),
  }),
});

/** A whole, valid configuration. From `loadConfig` the `dataDir` is absolute. */
export type Config = Static<typeof ConfigSchema>;
