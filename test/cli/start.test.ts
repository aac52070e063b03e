import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { publishServer, removeServerFile } from '../../src/cli/shared/running-server.ts';
import { nodeSupport } from '../../src/cli/node-version.ts';
import { collab as collabApart, collabCommand, type Server, startCollab, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { noNativeCore } from '../helpers/core.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

/** Calls the API of a server. Returns the status and body of the response. */
async function api(
  url: string,
  key: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: await answer.json() };
}

/** A port that is in use until the end of the test. */
async function takenPort(t: Test): Promise<number> {
  const server = createServer();
  t.teardown(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Starts that follow each other on one folder. */
const cwd = tempFolder(t);
const dir = join(cwd, "it's mine");
let secretKey = '';

t.test('the first start creates the folder and shows the keys once', async (t) => {
  const running = startCollab(t, ['start', '--dir', dir, '--port', '0', '--workers', '1', '--json'], {
    env: { COLLAB_LOG_LEVEL: 'debug' },
  });
  const lines: string[] = [];
  const ended = running.line((line) => {
    lines.push(line);
    const { address } = JSON.parse(line) as { address?: string };
    if (address !== undefined) void fetch(`${address}/livez`).finally(() => void running.end());
    return false;
  });
  await t.rejects(ended);
  const ready = JSON.parse(lines[0] ?? '') as Server['ready'];
  t.match(ready, {
    ready: true,
    dir,
    workers: 1,
    pid: running.process.pid,
    environment: { slug: 'default' },
    secretKey: /^sk_/,
    publishableKey: /^pk_/,
    jwtKid: String,
  });
  secretKey = ready.secretKey ?? '';

  await t.test(
    'with --json standard output is one document, and the log of all processes goes to standard error',
    (t) => {
      t.equal(lines.length, 1);
      const log = running
        .errors()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { worker: string; msg: string });
      for (const [worker, msg] of [
        ['primary', 'ready'],
        ['web-1', 'request'],
        ['primary', 'stopped'],
      ])
        t.ok(
          log.some((line) => line.worker === worker && line.msg === msg),
          `${worker}: ${msg}`,
        );
      t.end();
    },
  );
});

t.test('a later start has the same keys, and what it leaves behind when it is killed is ignored', async (t) => {
  const killed = await startServer(t, dir, ['--workers', '1', '--demo']);
  t.strictSame(Object.keys(killed.ready), ['ready', 'address', 'port', 'workers', 'core', 'pid', 'dir']);
  const { status, body } = await api(killed.url, secretKey, 'GET', '/rooms');
  t.equal(status, 200, 'the key of the first start still works');
  t.match(body, { items: [] }, 'a folder that is there is not written to, also with --demo');
  t.match(JSON.parse(readFileSync(join(dir, 'data', 'server.json'), 'utf8')), {
    pid: killed.process.pid,
    address: killed.url,
    core: killed.ready.core,
  });
  await killed.end('SIGKILL');
  t.match(await collabJson(t, ['status', '--dir', dir], { code: 3, inside: true }), { running: false, address: null });
});

t.test('a later start prints the command that creates another key, which works when pasted', async (t) => {
  const server = startCollab(t, ['start', '--dir', "./it's mine", '--port', '0', '--workers', '1'], { cwd });
  const url = /ready at (http:\S+) /.exec(await server.line((line) => line.startsWith('Collab is ready')))?.[1] ?? '';
  const line = await server.line((text) => text.includes(' key create '));
  // Without a build, the program is TypeScript.
  const isBuilt = collabCommand.length === 2;
  const env = isBuilt ? process.env : { ...process.env, NODE_OPTIONS: `--import=${import.meta.resolve('tsx')}` };
  const [, key = ''] = /(sk_default_\w+)/.exec(execFileSync('sh', ['-c', line], { cwd, env, encoding: 'utf8' })) ?? [];
  t.equal((await api(url, key, 'GET', '/rooms')).status, 200);
  t.equal(await server.end('SIGINT'), 0);
  t.notOk(existsSync(join(dir, 'data', 'server.json')), 'a server that ends by itself leaves nothing');
});

t.test(
  'with --demo a new folder begins with one thread, and the printed command posts another when pasted',
  { skip: hasCurl ? false : 'there is no curl here' },
  async (t) => {
    const dir = tempFolder(t);
    const server = startCollab(t, ['start', '--dir', dir, '--port', '0', '--workers', '1', '--demo']);
    const page =
      /^Open (http:\S+)\/ in a browser\.$/.exec(await server.line((line) => line.startsWith('Open')))?.[1] ?? '';
    const line = await server.line((text) => text.startsWith('  curl '));
    const posted = JSON.parse(
      execFileSync('sh', ['-c', line], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    ) as { thread: object };
    t.match(posted, {
      thread: {
        roomId: 'demo',
        position: { x: 0.5, y: 0.25 },
        comments: [{ userId: 'ci-bot', body: 'Hello from curl' }],
      },
    });
    t.match(await (await fetch(`${page}/`)).text(), /<!doctype html>/i);
    const { items } = await collabJson<{ items: { userId: string }[] }>(t, [
      'user',
      'list',
      '--env',
      'default',
      '--dir',
      dir,
    ]);
    t.strictSame(items.map(({ userId }) => userId).toSorted(), ['ann', 'bob', 'ci-bot']);
    const threads = ['thread', 'list', 'demo', '--env', 'default', '--dir', dir];
    const { items: listed } = await collabJson<{
      items: { position: object; comments: { userId: string; body: string }[] }[];
    }>(t, threads);
    t.match(listed.at(-1), { position: { selector: '#summary' }, userId: 'bob' });
    t.equal(listed.length, 2);
  },
);

t.test('a first start in a folder with config.json', async (t) => {
  const dir = tempFolder(t);
  writeFileSync(join(dir, 'config.json'), '{"port": 1, "workers": 9}');
  const server = startCollab(t, ['start', '--dir', dir, '--port', '0', '--workers', '1'], {
    env: { COLLAB_PORT: '2', COLLAB_WORKERS: '8' },
  });
  const ready = await server.line((line) => line.startsWith('Collab is ready'));
  t.match(
    ready,
    /^Collab is ready at http:\/\/127\.0\.0\.1:\d{4,} with one worker\. /,
    'flags override variables and the file',
  );

  await t.test('a second start on the same folder is refused, naming the running process', async (t) => {
    t.match(await collab(['start', '--dir', dir, '--port', '0', '--workers', '1']), {
      code: 1,
      stdout: '',
      stderr: new RegExp(`in use by process ${server.process.pid}`),
    });
  });

  await t.test(
    'without --demo the two printed commands post a thread when pasted in order',
    { skip: hasCurl ? false : 'there is no curl here' },
    async (t) => {
      const answers = [];
      for (let i = 0; i < 2; i++) {
        const line = await server.line((text) => text.startsWith('  curl '));
        answers.push(
          JSON.parse(execFileSync('sh', ['-c', line], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })),
        );
      }
      t.match(answers, [{ user: { userId: 'ci-bot', kind: 'bot' } }, { thread: { roomId: 'demo' } }]);
    },
  );
});

t.test('an invalid flag or option exits with 2, its path and the reason; nothing is created', async (t) => {
  const dir = join(tempFolder(t), 'none');
  t.match(await collab(['start', '--dir', dir, '--port', '70000'], { inside: true }), {
    code: 2,
    stdout: '',
    stderr: /port must be a whole number from 0 to 65535, not "70000" \(in the flag --port\)/,
  });
  t.match(await collab(['start', '--dir', dir], { inside: true, env: { COLLAB_LOG_LEVEL: 'loud' } }), {
    code: 2,
    stdout: '',
    stderr: /log\.level must be/,
  });
  t.notOk(existsSync(dir));
});

// Without warnings: newer versions of Node have one for what the loader of the tests calls.
const importing = (script: string) => ({
  NODE_OPTIONS: `--no-deprecation --import=data:text/javascript,${encodeURIComponent(script)}`,
});

t.test(
  'an unsupported Node, or a demanded native core that this Node has not, is reported in one line, and nothing is created or forked',
  async (t) => {
    const run = async (script: string, args: readonly string[] = ['start', '--port', '0']) => {
      const env = { ...importing(script), COLLAB_CORE: 'uws' };
      const dir = join(tempFolder(t), 'none');
      const ended = await collabApart([...args, '--dir', dir], { env });
      t.notOk(existsSync(dir), 'no folder was made');
      return ended;
    };
    const versioned = (name: string, value: string): string =>
      `Object.defineProperty(process.versions, '${name}', { value: '${value}' })`;
    t.match(await run(versioned('modules', '999')), {
      code: 1,
      stdout: '',
      stderr:
        /^collab: uWebSockets\.js has no build that runs on \S+ \S+, Node \S+, [^\n]*\. Set core to auto or node [^\n]*: it has builds for Linux [^\n]*\n$/,
    });
    t.match(await run(versioned('node', '20.11.1')), {
      code: 1,
      stdout: '',
      stderr: /^collab: Node 20\.11\.1 \([^\n]*\) is too old: Collab needs Node 20\.12 or later[^\n]*\n$/,
    });
    const { stderr } = await run(`${versioned('node', '22.21.0')}; ${versioned('modules', '999')}`);
    t.match(
      stderr,
      /^collab: Node 22\.21\.0 \([^\n]*\) is not tested with Collab, which starts all the same\. [^\n]*\ncollab: uWebSockets\.js has no build/,
      'is reported before anything else',
    );
    t.equal(nodeSupport('23.5.0'), 'untested');
    t.match(await run(versioned('node', '18.20.0'), ['init']), {
      code: 1,
      stdout: '',
      stderr: /^collab: Node 18\.20\.0 /,
    });
  },
);

t.test(
  'a native core that corrupts responses makes the start fail at once if it is demanded, and is not used otherwise',
  { skip: noNativeCore },
  async (t) => {
    const corrupting = `
    import { createRequire } from 'node:module';
    const core = createRequire(${JSON.stringify(import.meta.url)})('uWebSockets.js');
    const { App } = core;
    core.App = () => {
      const app = App();
      const any = app.any.bind(app);
      app.any = (path, handle) => any(path, (response, request) => handle({ end: (_text, last) => response.end('?', last) }, request));
      return app;
    };`;
    const dir = join(tempFolder(t), 'new');
    const run = async () =>
      collabApart(['start', '--port', '0', '--dir', dir, '--workers', '1'], {
        env: { ...importing(corrupting), COLLAB_CORE: 'uws' },
      });
    const refusal = 'collab: uws_\\S+ corrupts text: [^\\n]*\\. Set core to auto [^\\n]*\\n$';
    t.match(await run(), {
      code: 1,
      stderr: new RegExp(`^secret key +sk_default_[^]*not shown again[^\\n]*\\n${refusal}`),
    });
    t.match(await run(), { code: 1, stderr: new RegExp(`^${refusal}`) });
    const server = await startServer(t, dir, ['--workers', '1'], { env: importing(corrupting) });
    t.match(server.errors(), /"core: node, which is slower than uWebSockets\.js \(uws_\S+ corrupts text: /);
    t.equal((await fetch(`${server.url}/readyz`)).status, 200);
  },
);

t.test('a port in use is refused, and nothing is created', async (t) => {
  const port = await takenPort(t);
  const dir = join(tempFolder(t), 'new');
  t.match(await collab(['start', '--dir', dir, '--port', String(port)], { inside: true }), {
    code: 1,
    stdout: '',
    stderr: new RegExp(`^collab: Port ${port} on 127\\.0\\.0\\.1 is in use`),
  });
  const env = { COLLAB_METRICS_PORT: String(port) };
  t.match(await collab(['start', '--dir', dir, '--port', '0'], { inside: true, env }), {
    code: 1,
    stdout: '',
    stderr: new RegExp(
      `^collab: Port ${port} on 127\\.0\\.0\\.1 is in use by another program\\. .*with metrics\\.port`,
    ),
  });
  t.notOk(existsSync(dir));
});

t.test('a first start that is interrupted shows the keys', async (t) => {
  const server = startCollab(t, ['start', '--dir', tempFolder(t), '--port', '0', '--workers', '1'], {
    env: { COLLAB_LOG_LEVEL: 'debug' },
  });
  const closed = once(server.process, 'close');
  await server.line((line) => line.includes('"worker started"'));
  server.process.kill('SIGINT');
  const lines: string[] = [];
  await t.rejects(
    server.line((line) => lines.push(line) === 0),
    'it ends',
  );
  t.strictSame(await closed, [0, null]);
  // On a busy machine it may be ready before the signal.
  const isReady = lines.some((line) => line.startsWith('Collab is ready'));
  t.match(isReady ? lines.join('\n') : server.errors(), /^secret key +sk_default_/m);
});

t.test('the server.json of another server is not removed', async (t) => {
  const dataDir = tempFolder(t);
  const running = { address: 'http://127.0.0.1:1', workers: 1, startedAt: '2026-01-02T03:04:05.678Z' };
  await publishServer(dataDir, { pid: process.pid + 1, ...running });
  removeServerFile(dataDir);
  t.ok(existsSync(join(dataDir, 'server.json')));
  await publishServer(dataDir, { pid: process.pid, ...running });
  removeServerFile(dataDir);
  t.notOk(existsSync(join(dataDir, 'server.json')));
});

t.test('a server that waits for a bucket stops at once', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  const blobs = { url: 's3://files', endpoint: 'http://127.0.0.1:1' };
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 }, blobs }));
  const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
  const server = startCollab(t, ['start', '--dir', dir, '--port', '0', '--workers', '1'], { env });
  await server.line((line) => line.includes('this worker waits for it'));
  t.equal(await server.end(), 0);
  await t.rejects(server.line((line) => line.includes('is killed')));
});
