import * as Type from 'typebox';
import type { Static } from 'typebox';
import { blobsOptions, sharedOptions, storeOptions } from './engine-options.ts';
import { PluginEntrySchema } from './plugin-entries.ts';

const group = <T extends Parameters<typeof Type.Object>[0]>(description: string, properties: T) =>
  Type.Object(properties, { description, additionalProperties: false });

const whole = (minimum: number, maximum: number, fallback: number, description: string) =>
  Type.Integer({ minimum, maximum, default: fallback, description });

const flag = (fallback: boolean, description: string) => Type.Boolean({ default: fallback, description });

const networks = (description: string) => Type.Array(Type.String({ format: 'cidr' }), { default: [], description });

const strings = (pattern: string, what: string, description: string, more: { writeOnly?: true } = {}) =>
  Type.Array(Type.String({ pattern, description: what }), { default: [], description, ...more });

/**
 * Every option of the server: its path in config.json, default, bounds and description. Everything else is derived from
 * it: environment variables, flags, config.example.json, the table in docs/configuration.md and the error messages.
 */
export const ConfigSchema = group('The configuration of a Collab server.', {
  host: Type.String({
    minLength: 1,
    maxLength: 253,
    default: '127.0.0.1',
    description:
      'Address to listen on. 127.0.0.1 is reachable from this machine only; 0.0.0.0 from everywhere: then put a TLS proxy in front.',
  }),
  port: whole(0, 65_535, 8787, 'Port to listen on; 0 lets the system choose one.'),
  workers: Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal('auto')], {
    default: 'auto',
    description: 'Number of web worker processes; auto starts one per processor.',
  }),
  core: Type.Union([Type.Literal('auto'), Type.Literal('uws'), Type.Literal('node')], {
    default: 'auto',
    description:
      'What serves HTTP and WebSocket: uws, the native uWebSockets.js; node, the HTTP server of Node.js, ' +
      'which runs everywhere and is slower; auto, uws where it works and node elsewhere.',
  }),
  workerTimeoutSeconds: whole(
    0,
    3_600,
    10,
    'Seconds without an answer after which a worker process counts as hung and is killed and replaced; 0 for never, e.g. under a debugger.',
  ),
  dataDir: Type.String({
    minLength: 1,
    maxLength: 4096,
    default: './data',
    description: 'Folder of the store and the uploaded files, on a local disk; relative to the folder of config.json.',
  }),
  publicUrl: Type.String({
    pattern: '^(https?://[^\\s/?#@]{1,253}(/[^\\s?#]{0,512}[^\\s?#/])?)?$',
    title: 'an address such as https://comments.example.com without a trailing slash, or empty',
    default: '',
    description:
      'Public address of the server; the URLs of files begin with it. If empty, the address that each ' +
      'request or socket was sent to (Host) is used in its responses.',
  }),
  demo: flag(
    false,
    'Serves the demo page at /. Every visitor can write to the environment `default`: never enable it on a public server.',
  ),
  plugins: Type.Array(PluginEntrySchema, {
    default: [],
    format: 'plugins',
    writeOnly: true,
    description:
      'Plugins to load, in order ([plugins](plugins.md)). An entry is `{ "use", "enabled", "optional", ' +
      '"isolation", "allowPrivate", "priority", "config", "environments" }`; the variable takes names ' +
      'separated by commas, or JSON. `webhook` is loaded without being named.',
  }),
  docs: flag(
    true,
    'Serves the API reference at /docs, without authentication. The OpenAPI document at /api/v1/openapi.json is always served.',
  ),
  log: group('The log: one JSON object per line on standard output, or on standard error with `start --json`.', {
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
      { default: 'info', description: 'Lowest level that is logged; debug adds one line per request.' },
    ),
  }),
  trustProxy: networks('Networks of your own proxies (CIDR). X-Forwarded-For is trusted only in requests from them.'),
  rateLimit: group('Rate limits, counted over all workers.', {
    perMinute: whole(1, 1_000_000, 100, 'Requests allowed in any 60 seconds per client address.'),
    files: whole(1, 1_000_000, 600, 'The same for files and thumbnails, which are counted separately.'),
    exempt: networks('Networks that are never limited (CIDR), such as that of your backend.'),
  }),
  ws: group('WebSocket connections.', {
    allowQueryToken: flag(
      false,
      'Also accepts the user token in the query string. It will then appear in the access logs of proxies.',
    ),
    heartbeatSeconds: whole(1, 50, 25, 'Seconds without a message after which the server sends a ping.'),
    maxConnectionsPerUser: whole(1, 10_000, 20, 'Sockets that one user may have open.'),
    maxUnauthenticatedPerIp: whole(1, 10_000, 20, 'Unauthenticated sockets that one address may have open.'),
    messagesPerSecond: whole(1, 100_000, 50, 'Messages that one socket may send per second in the long run.'),
    messageBurst: whole(1, 100_000, 100, 'Messages that one socket may send at once after a pause.'),
    readMegabytesPerMinute: whole(
      0,
      1_000_000,
      256,
      'Megabytes that one user may read per minute with messages such as `room.get`, over all workers and sockets; 0 for no limit.',
    ),
    maxBackpressureBytes: whole(
      65_536,
      268_435_456,
      1_048_576,
      'Bytes buffered for a slow socket. Beyond that it is closed (1013), and the client resumes by position.',
    ),
  }),
  shutdown: group('What happens after SIGTERM.', {
    drainSeconds: whole(1, 600, 10, 'Seconds after which unfinished requests are aborted.'),
    closeSpreadSeconds: whole(
      0,
      600,
      5,
      'Seconds over which the sockets are closed, so that clients do not all reconnect at once.',
    ),
  }),
  events: group('The event streams, from which clients resume.', {
    retentionHours: whole(1, 8_760, 24, 'Hours for which every event is kept.'),
    retentionCount: whole(
      1_000,
      100_000_000,
      10_000,
      'Number of latest events per environment that are kept however old they are.',
    ),
  }),
  crdt: group('The shared (CRDT) state of rooms.', {
    mergeSecondsPerMinute: whole(
      0,
      3_600,
      10,
      'Seconds per minute that merging and comparing Yjs documents may take for one user or one secret key, ' +
        'over all workers; 0 for no limit.',
    ),
  }),
  uploads: group('Uploads of files.', {
    megapixelsPerMinute: whole(
      0,
      1_000_000,
      1_000,
      'Megapixels of PNG, GIF, WebP and progressive JPEG images (which are decoded in full) that one user ' +
        'may upload per minute, over all workers. The default allows 20 images of the largest size; 0 for no ' +
        'limit.',
    ),
  }),
  turn: group('TURN and STUN servers for peer-to-peer sync between browsers, such as coturn with `use-auth-secret`.', {
    urls: strings(
      '^turns?:[^\\s/?@,]{1,255}(\\?transport=(udp|tcp))?$',
      'addresses such as turn:turn.example.com:3478?transport=udp',
      'TURN servers that browsers receive, with credentials that the server generates.',
    ),
    stunUrls: strings(
      '^stuns?:[^\\s/?@,]{1,255}$',
      'addresses such as stun:turn.example.com:3478',
      'STUN servers that browsers receive.',
    ),
    secret: strings(
      '^[^\\s,]{1,256}$',
      'secrets of 1 to 256 characters without white space and commas',
      'Secrets shared with the TURN servers (`static-auth-secret`). The first one signs. To rotate it, add ' +
        'the new one to the TURN servers first.',
      { writeOnly: true },
    ),
  }),
  metrics: group('Metrics for Prometheus, at /metrics on a separate listener.', {
    port: whole(0, 65_535, 0, 'Port of the listener, by convention 9464; 0 disables it.'),
    host: Type.String({
      minLength: 1,
      maxLength: 253,
      default: '127.0.0.1',
      description:
        'Address of the listener. Before you change it from 127.0.0.1, restrict access with metrics.token or a firewall.',
    }),
    token: Type.String({
      minLength: 0,
      maxLength: 512,
      default: '',
      description: 'Bearer token that requests must send in `Authorization`; empty allows everyone.',
      writeOnly: true,
    }),
  }),
  store: group('Where records and events are.', storeOptions),
  shared: group('Where what nodes share for a moment is.', sharedOptions),
  blobs: group('Where uploaded files are.', blobsOptions),
  storage: group('The disk.', {
    minFreeMb: whole(0, 1_048_576, 256, 'Free space in megabytes below which writes are refused; reads continue.'),
  }),
});

/** A complete, valid configuration. `loadConfig` returns an absolute `dataDir`. */
export type Config = Static<typeof ConfigSchema>;
