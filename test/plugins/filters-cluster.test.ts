import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { wav } from '../fixtures/media.ts';
import { initFolder, stablePort, until } from '../helpers/cluster.ts';
import { collabJson } from '../helpers/command.ts';
import { type PluginCluster, startPluginCluster } from '../helpers/plugin-cluster.ts';
import { parsePrometheus } from '../helpers/prometheus.ts';
import { TestSocket } from '../helpers/socket.ts';
import { formOf } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

const fixture = fileURLToPath(new URL('../fixtures/plugins/deciding.mjs', import.meta.url));

interface Filtering {
  readonly cluster: PluginCluster;
  readonly metricsPort: number;
  /** The secret key of the environment `staging`. */
  readonly stagingKey: string;
}

/**
 * Starts a server with the plugins low, open, closed, hold, high and gate, and the environments default and staging,
 * where closed is disabled.
 */
async function startFiltering(t: Test): Promise<Filtering> {
  const metricsPort = await stablePort();
  const plugins = [
    { use: './low.mjs', environments: { staging: { priority: 300, config: { tag: 'LOW' } } } },
    { use: './open.mjs' },
    { use: './closed.mjs', environments: { staging: { enabled: false } } },
    { use: './hold.mjs' },
    { use: './high.mjs', priority: 200 },
    { use: fixture },
  ];
  const folder = await initFolder({ rateLimit: { perMinute: 1_000_000 }, metrics: { port: metricsPort }, plugins });
  const options = {
    low: { priority: 10 },
    open: { timeoutMs: 100 },
    closed: { timeoutMs: 100, onError: 'closed' },
    hold: { timeoutMs: 100, onError: 'hold' },
    high: {},
  };
  for (const [name, own] of Object.entries(options)) {
    writeFileSync(
      join(folder.dir, `${name}.mjs`),
      `import { deciding } from ${JSON.stringify(fixture)};\nexport default deciding('${name}', ${JSON.stringify(own)});\n`,
    );
  }
  await collabJson(t, ['env', 'create', 'staging', '--dir', folder.dir]);
  const key = ['key', 'create', '--env', 'staging', '--kind', 'secret', '--dir', folder.dir];
  const { secretKey } = await collabJson<{ secretKey: string }>(t, key);
  return {
    cluster: await startPluginCluster(t, folder),
    metricsPort,
    stagingKey: secretKey,
  };
}

t.test('the filters of several plugins in a server', async (t) => {
  const { cluster, metricsPort, stagingKey } = await startFiltering(t);
  const { url, keys, call } = cluster;
  const threadId = await cluster.thread('Hello');
  const comment = (body: string) => call('POST', `/threads/${threadId}/comments`, { userId: 'ann', body });
  const published = (body: string) => ({ status: 201, body: { comment: { body, status: undefined } } });
  const held = (body: string) => ({ status: 201, body: { comment: { body, status: 'held' } } });
  const refused = (error: string) => ({ status: 403, body: { error } });
  const NOT_CHECKED = 'The content could not be checked. Try again later';

  await t.test(
    'they run by priority, then in the order of the configuration, until one rejects or holds',
    async (t) => {
      t.match(await comment('Hi'), published('Hi high open closed hold low'));
      t.match(await comment('open:reject closed:throw'), refused('open says no'));
      t.match(await comment('open:hold closed:reject'), held('open:hold closed:reject high'));
      t.match(await comment('closed:reject open:throw'), refused('closed says no'), 'those after an open failure run');
    },
  );

  await t.test('onError decides about a filter that throws, and about one that hangs', async (t) => {
    const timed = 'did not end within 100 ms';
    for (const failure of ['throw', 'hang']) {
      t.match(await comment(`open:${failure}`), published(`open:${failure} high closed hold low`));
      t.match(await comment(`closed:${failure}`), refused(NOT_CHECKED));
      t.match(await comment(`hold:${failure}`), held(`hold:${failure} high open closed`));
    }
    await cluster.logged(({ plugin, reason }) => plugin === 'hold' && reason === timed);
    const reasons = cluster
      .log()
      .filter(({ msg }) => msg === 'a filter of a plugin failed')
      .map(({ plugin, reason }) => `${String(plugin)} ${String(reason)}`);
    t.strictSame(reasons.slice(-6), [
      'open broken',
      'closed broken',
      'hold broken',
      `open ${timed}`,
      `closed ${timed}`,
      `hold ${timed}`,
    ]);
  });

  await t.test('an environment has its own plugins, priorities and options', async (t) => {
    const headers = { authorization: `Bearer ${stagingKey}`, 'content-type': 'application/json' };
    const staging = async (
      method: string,
      path: string,
      body: object,
    ): Promise<{ status: number; body: Record<string, unknown> }> => {
      const answer = await fetch(`${url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    await staging('PUT', '/users/ann', { name: 'Ann' });
    const { id } = (await staging('POST', '/rooms/home/threads', { userId: 'ann', body: 'Hello' })).body['thread'] as {
      id: string;
    };
    t.match(
      await staging('POST', `/threads/${id}/comments`, { userId: 'ann', body: 'closed:reject' }),
      published('closed:reject LOW high open hold'),
    );
    t.match(await comment('closed:reject'), refused('closed says no'), 'the other environment is as before');
  });

  await t.test('connection.open and upload.create can refuse', async (t) => {
    const headersOf = async (userId: string): Promise<Record<string, string>> => ({
      'X-Service-Key': keys.publishableKey,
      'X-Service-Token': await userToken(keys, userId),
    });
    const address = `${url.replace('http', 'ws')}/api/v1/ws`;
    t.match(await new TestSocket(address, { headers: await headersOf('mallory') }).refused, {
      status: 403,
      headers: { 'x-error-code': 'content_rejected' },
      body: { error: 'no connection for you' },
    });
    const protocols = [
      'collab.v1',
      `collab.key.${keys.publishableKey}`,
      `collab.token.${await userToken(keys, 'mallory')}`,
    ];
    t.strictSame(await new TestSocket(address, { protocols }).closed, { code: 4403, reason: 'content_rejected' });
    const socket = new TestSocket(address, { headers: await headersOf('ann') });
    t.match(await socket.frame('welcome'), { type: 'welcome' }, 'others are connected');
    await socket.close();
    const upload = async (name: string): Promise<unknown> => {
      const answer = await fetch(`${url}/api/v1/upload`, {
        method: 'POST',
        headers: await headersOf('ann'),
        body: formOf({ bytes: wav(0.1), type: 'audio/wav', name }),
      });
      return [answer.status, ((await answer.json()) as { error?: string }).error];
    };
    t.strictSame(await upload('song.exe'), [400, 'no programs, ann']);
    t.strictSame(await upload('song.wav'), [200, undefined]);
  });

  await t.test('a filter that keeps failing is left out, and the metrics show it', async (t) => {
    for (let failure = 0; failure < 5; failure++) t.match(await comment('closed:throw'), refused(NOT_CHECKED));
    t.match(await comment('Hi'), refused(NOT_CHECKED), 'it is not called, and stays closed');
    const sample = async (name: string, suffix = ''): Promise<number | undefined> => {
      const families = parsePrometheus(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text());
      const found = families
        .get(`collab_${name}`)
        ?.samples.find(
          (one) =>
            one.name === `collab_${name}${suffix}` &&
            one.labels['plugin'] === 'closed' &&
            one.labels['hook'] === 'comment.create',
        );
      return found?.value;
    };
    await until(async () => (await sample('plugin_hook_errors_total')) === 7);
    t.equal(await sample('plugin_filter_skipped'), 1);
    t.equal(await sample('plugin_hook_duration_seconds', '_count'), 14, 'calls of it');
  });
});
