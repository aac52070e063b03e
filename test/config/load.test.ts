import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ConfigError, type Problem } from '../../src/config/error.ts';
import { type ConfigSources, loadConfig, loadWithSources } from '../../src/config/load.ts';
import { renderSchema } from '../../src/config/example.ts';
import { options } from '../../src/config/option.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** A folder with this config.json; none when undefined. */
function folder(t: Test, content?: unknown): string {
  const dir = tempFolder(t);
  if (content !== undefined)
    writeFileSync(join(dir, 'config.json'), typeof content === 'string' ? content : JSON.stringify(content));
  return dir;
}

function problems(from: ConfigSources): readonly Problem[] {
  try {
    loadConfig(from);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

t.test('without a file, variables and flags every option has its default', async (t) => {
  const dir = folder(t);
  const { config, sources } = loadWithSources({ dir, env: {}, flags: {} });
  t.match(config, {
    host: '127.0.0.1',
    port: 8787,
    workers: 'auto',
    dataDir: join(dir, 'data'),
    demo: false,
    log: { level: 'info' },
    trustProxy: [],
    rateLimit: { perMinute: 100, exempt: [] },
    ws: { heartbeatSeconds: 25, maxBackpressureBytes: 1_048_576 },
    shutdown: { drainSeconds: 10, closeSpreadSeconds: 5 },
    events: { retentionHours: 24, retentionCount: 10_000 },
    storage: { minFreeMb: 256 },
  });
  t.equal(sources.size, 0);
});

t.test('flags win over variables, variables over the file, the file over the defaults', async (t) => {
  const dir = folder(t, { port: 1001, host: '10.0.0.1', rateLimit: { perMinute: 7 }, workers: 3 });
  const env = { COLLAB_PORT: '1002', COLLAB_HOST: '10.0.0.2', PORT: '9' };
  const { config, sources } = loadWithSources({ dir, env, flags: { port: '1003', host: undefined } });
  t.equal(config.port, 1003);
  t.equal(config.host, '10.0.0.2');
  t.equal(config.rateLimit.perMinute, 7);
  t.equal(config.workers, 3);
  t.equal(sources.get('port'), 'the flag --port');
  t.equal(sources.get('host'), 'the variable COLLAB_HOST');
  t.equal(sources.get('workers'), join(dir, 'config.json'));
});

t.test('variables are named by the path and read by the type of the option', async (t) => {
  const env = {
    COLLAB_RATE_LIMIT_PER_MINUTE: '250',
    COLLAB_WS_ALLOW_QUERY_TOKEN: 'true',
    COLLAB_TRUST_PROXY: '10.0.0.0/8, fd00::/8',
    COLLAB_WORKERS: 'auto',
    COLLAB_LOG_LEVEL: 'debug',
    COLLAB_WS_MAX_UNAUTHENTICATED_PER_IP: '9',
  };
  const config = loadConfig({ dir: folder(t), env, flags: {} });
  t.match(config, {
    rateLimit: { perMinute: 250 },
    ws: { allowQueryToken: true, maxUnauthenticatedPerIp: 9 },
    trustProxy: ['10.0.0.0/8', 'fd00::/8'],
    workers: 'auto',
    log: { level: 'debug' },
  });
});

t.test('an empty variable counts as not set', async (t) => {
  t.equal(loadConfig({ dir: folder(t), env: { COLLAB_PORT: '' }, flags: {} }).port, 8787);
});

t.test('variables that Kubernetes sets for a Service called collab are ignored', async (t) => {
  const env = {
    COLLAB_PORT: 'tcp://10.0.0.7:8787',
    COLLAB_SERVICE_HOST: '10.0.0.7',
    COLLAB_SERVICE_PORT: '8787',
    COLLAB_SERVICE_PORT_HTTP: '8787',
    COLLAB_PORT_8787_TCP_ADDR: '10.0.0.7',
  };
  t.equal(loadConfig({ dir: folder(t), env, flags: {} }).port, 8787);
});

t.test('variables of programs that use Collab, such as the examples, are ignored', async (t) => {
  const used = [
    'examples/node-bot/bot.js',
    'examples/node-token-endpoint/server.js',
    'examples/python-token-endpoint/server.py',
  ].flatMap((file) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').match(/COLLAB_[A-Z_]+/g) ?? []);
  const env = Object.fromEntries([...used, 'COLLAB_PUBLISHABLE_KEY'].map((name) => [name, 'x']));
  t.ok('COLLAB_SECRET_KEY' in env && 'COLLAB_SIGNING_SECRET' in env);
  t.equal(loadConfig({ dir: folder(t), env, flags: {} }).port, 8787);
});

t.test('dataDir is relative to the folder, or absolute', async (t) => {
  const dir = folder(t, { dataDir: '../elsewhere' });
  t.equal(loadConfig({ dir, env: {}, flags: {} }).dataDir, join(dir, '../elsewhere'));
  t.equal(loadConfig({ dir, env: { COLLAB_DATA_DIR: '/srv/data' }, flags: {} }).dataDir, '/srv/data');
});

t.test('a value out of bounds is refused with the path, the bound and the source', async (t) => {
  const dir = folder(t, { rateLimit: { perMinute: 0 } });
  const file = join(dir, 'config.json');
  t.strictSame(problems({ dir, env: {}, flags: {} }), [
    { path: 'rateLimit.perMinute', reason: 'must be a whole number from 1 to 1000000, not 0', source: file },
  ]);
  t.throws(() => loadConfig({ dir, env: {}, flags: {} }), {
    message: `rateLimit.perMinute must be a whole number from 1 to 1000000, not 0 (in ${file})`,
  });
});

t.test('the refusal says what each kind of option accepts', async (t) => {
  const cases: [content: unknown, message: string][] = [
    [{ port: '8787' }, 'port must be a whole number from 0 to 65535, not "8787"'],
    [{ port: 80.5 }, 'port must be a whole number from 0 to 65535, not 80.5'],
    [{ port: null }, 'port must be a whole number from 0 to 65535, not null'],
    [{ workers: 0 }, 'workers must be a whole number from 1 to 256 or auto, not 0'],
    [{ workers: 'many' }, 'workers must be a whole number from 1 to 256 or auto, not "many"'],
    [{ demo: 'yes' }, 'demo must be true or false, not "yes"'],
    [{ host: '' }, 'host must be a string of 1 to 253 characters, not ""'],
    [{ log: { level: 'loud' } }, 'log.level must be trace, debug, info, warn, error, fatal or silent, not "loud"'],
    [
      { trustProxy: ['10.0.0.0/33'] },
      'trustProxy must be a list of networks such as 10.0.0.0/8 or fd00::/8, not ["10.0.0.0/33"]',
    ],
    [
      { trustProxy: '10.0.0.0/8' },
      'trustProxy must be a list of networks such as 10.0.0.0/8 or fd00::/8, not "10.0.0.0/8"',
    ],
    [{ rateLimit: 100 }, 'rateLimit must be an object of options, not 100'],
    [[], 'The file must contain a JSON object'],
    [{ host: 'x'.repeat(300) }, `host must be a string of 1 to 253 characters, not "${'x'.repeat(56)}…`],
  ];
  for (const [content, message] of cases) {
    const [problem] = problems({ dir: folder(t, content), env: {}, flags: {} });
    t.equal(`${problem?.path} ${problem?.reason}`.trim(), message);
  }
});

t.test('an unknown option is refused with a suggestion', async (t) => {
  const cases: [content: Record<string, unknown>, reason: RegExp][] = [
    [{ prot: 80 }, /^is not an option; did you mean port\?$/],
    [{ rateLimit: { perMinut: 5 } }, /^is not an option; did you mean rateLimit\.perMinute\?$/],
    [{ ratelimit: { perMinute: 5 } }, /^is not an option; did you mean rateLimit\?$/],
    [{ colour: 'blue' }, /^is not an option; `collab config example` lists all options$/],
    [JSON.parse('{"__proto__": {"port": 1}}') as Record<string, unknown>, /^is not an option/],
    [{ constructor: 1 }, /^is not an option/],
  ];
  for (const [content, reason] of cases) {
    const dir = folder(t, JSON.stringify(content));
    const [problem] = problems({ dir, env: {}, flags: {} });
    t.match(problem?.reason, reason);
    t.equal(problem?.source, join(dir, 'config.json'));
  }
  t.strictSame(problems({ dir: folder(t), env: { COLLAB_RATELIMIT_PERMINUTE: '5' }, flags: {} }), [
    {
      path: 'COLLAB_RATELIMIT_PERMINUTE',
      reason: 'is not an option; did you mean COLLAB_RATE_LIMIT_PER_MINUTE?',
      source: 'the variable COLLAB_RATELIMIT_PERMINUTE',
    },
  ]);
});

t.test('all problems of all sources are reported at once', async (t) => {
  const dir = folder(t, { port: -1, hots: 'x' });
  const found = problems({ dir, env: { COLLAB_DEMO: '1' }, flags: { workers: '0' } });
  t.strictSame(
    found.map(({ path }) => path),
    ['port', 'hots', 'demo', 'workers'],
  );
});

t.test('options that contradict each other are refused', async (t) => {
  const dir = folder(t, { shutdown: { drainSeconds: 3 }, ws: { messageBurst: 10 } });
  t.strictSame(
    problems({ dir, env: {}, flags: {} }).map(({ path, reason }) => `${path} ${reason}`),
    [
      'shutdown.closeSpreadSeconds must be at most shutdown.drainSeconds (3), not 5',
      'ws.messageBurst must be at least ws.messagesPerSecond (50), not 10',
    ],
  );
});

t.test('a file that is not JSON, or cannot be read, is refused by name', async (t) => {
  const dir = folder(t, '{ "port": 80, }');
  t.match(problems({ dir, env: {}, flags: {} }), [
    { path: '', reason: /not valid JSON/, source: join(dir, 'config.json') },
  ]);
  const other = folder(t);
  mkdirSync(join(other, 'config.json'), { recursive: true });
  t.match(problems({ dir: other, env: {}, flags: {} }), [{ reason: /cannot be read: EISDIR/ }]);
});

t.test('a byte order mark at the start of the file is ignored', async (t) => {
  t.equal(loadConfig({ dir: folder(t, '\uFEFF{"port": 80}'), env: {}, flags: {} }).port, 80);
});

t.test('TURN servers must be valid addresses and need a secret', (t) => {
  const dir = folder(t);
  const turn = (urls: string, secret: string) =>
    problems({ dir, env: {}, flags: { 'turn.urls': urls, 'turn.secret': secret } });
  t.strictSame(turn('turn:a.example:3478?transport=udp,turns:[::1]:5349', 'north,old'), []);
  t.match(turn('turn:a.example', ''), [
    { path: 'turn.secret', reason: 'must contain the secret of the servers in turn.urls' },
  ]);
  for (const url of ['a.example', 'stun:a.example', 'turn://a.example', 'turn:a b', 'turn:a?transport=sctp']) {
    t.match(turn(url, 'north'), [{ path: 'turn.urls', reason: /^must be a list of addresses such as turn:/ }], url);
  }
  t.end();
});

t.test('$schema names the schema for editors, whose options are those of the server, and all optional', async (t) => {
  const dir = folder(t, { $schema: './node_modules/collab/config.schema.json', port: 1234 });
  const { config, sources } = loadWithSources({ dir, env: {}, flags: {} });
  t.equal(config.port, 1234);
  t.strictSame([...sources.keys()], ['port']);
  t.notOk('$schema' in config);
  t.match(
    problems({ dir: folder(t, { log: { $schema: 'x' } }), env: {}, flags: {} }),
    [{ path: 'log.$schema' }],
    'only at the top',
  );
  const schema = JSON.parse(renderSchema()) as Node;
  const paths = (node: Node, path: string): string[] =>
    Object.entries(node.properties ?? {}).flatMap(([name, inner]) =>
      inner.properties === undefined ? [path + name] : paths(inner, `${path}${name}.`),
    );
  t.strictSame(paths(schema, ''), ['$schema', ...options.keys()]);
  t.notOk(JSON.stringify(schema.properties?.['log']).includes('required'));
  t.equal(schema.additionalProperties, false);
});

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: boolean;
}
