import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { build, type Plugin } from 'esbuild';
import t, { type Test } from 'tap';
import { compileScript, parse } from 'vue/compiler-sfc';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { type Cluster, collab, startCluster, until } from '../helpers/cluster.ts';
import { api } from '../helpers/widget-page.ts';

// The examples as they are, with the two values replaced that a reader replaces: the address of the server and the key.

const ROOM = '/rooms/docs%2Fintro/threads';
const examples = new URL('../../examples/', import.meta.url);
const hasPython = await new Promise((resolve) =>
  spawn('python3', ['--version'], { stdio: 'ignore' })
    .once('error', () => resolve(false))
    .once('exit', () => resolve(true)),
);

const cluster = await startCluster({
  workers: 1,
  config: {
    rateLimit: { perMinute: 1_000_000 },
    plugins: [{ use: 'webhook', allowPrivate: true }],
    shutdown: { closeSpreadSeconds: 0 },
  },
});
t.teardown(() => cluster.kill());
await api(cluster, 'PUT', '/users/bea', { name: 'Bea' });
await api(cluster, 'POST', ROOM, { userId: 'bea', body: 'Is this sentence true?', position: { x: 0.5, y: 0.5 } });

const signing = { COLLAB_SIGNING_SECRET: cluster.keys.jwtSecret, COLLAB_SIGNING_KID: cluster.keys.jwtKid };

/** The text of an example for this server. */
function example(path: string, { url, keys }: Cluster = cluster): string {
  return readFileSync(new URL(path, examples), 'utf8')
    .replaceAll('https://comments.example.com', url)
    .replaceAll('pk_…', keys.publishableKey);
}

/** Starts a server of the examples on a free port. Resolves with the address that it prints; it ends with the test. */
async function serve(t: Test, command: string, path: string, env: Readonly<Record<string, string>>): Promise<string> {
  const child: ChildProcess = spawn(command, [new URL(path, examples).pathname], {
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill());
  if (child.stdout === null) throw new Error('its output is a pipe');
  for await (const line of createInterface(child.stdout)) return line;
  throw new Error(`${path} ended before it listened`);
}

const endpoints = [
  ['node-token-endpoint/server.js', process.execPath],
  ['python-token-endpoint/server.py', 'python3'],
] as const;
for (const [path, command] of endpoints) {
  t.test(
    `${path} | the server accepts its tokens`,
    { skip: command === 'python3' && !hasPython ? 'no python3 here' : false },
    async (t) => {
      const url = await serve(t, command, path, signing);
      const token = await (await fetch(url, { method: 'POST' })).text();
      const headers = { 'X-Service-Key': cluster.keys.publishableKey, 'X-Service-Token': token };
      t.equal((await fetch(`${cluster.url}/api/v1/user-lookup?id=bea`, { headers })).status, 200);
      t.equal(
        (
          await fetch(`${cluster.url}/api/v1/user-lookup?id=bea`, {
            headers: { ...headers, 'X-Service-Token': `${token.slice(0, -8)}AAAAAAAA` },
          })
        ).status,
        401,
      );
      t.equal((await fetch(url)).status >= 400, true, 'only POST');
      t.equal((await fetch(new URL('/other', url), { method: 'POST' })).status, 404);
    },
  );

  t.test(
    `${path} | says which variables it needs`,
    { skip: command === 'python3' && !hasPython ? 'no python3 here' : false },
    async (t) => {
      const child = spawn(command, [new URL(path, examples).pathname], { env: { PATH: process.env['PATH'] } });
      let said = '';
      child.stderr.on('data', (data: Buffer) => (said += data.toString()));
      const code = await new Promise((resolve) => child.once('close', resolve));
      t.equal(code, 1);
      t.match(said, /Set COLLAB_SIGNING_SECRET and COLLAB_SIGNING_KID/);
    },
  );
}

t.test('node-bot/bot.js | answers a mention once', async (t) => {
  const env = { COLLAB_URL: cluster.url, COLLAB_SECRET_KEY: cluster.keys.secretKey };
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const url = await serve(t, process.execPath, 'node-bot/bot.js', { ...env, WEBHOOK_SECRET: secret });
  t.match(await collab('webhook', 'add', '--env', 'default', '--url', url, '--secret', secret, '--dir', cluster.dir), {
    code: 0,
  });
  const { thread } = (await (
    await api(cluster, 'POST', '/rooms/bot/threads', {
      userId: 'bea',
      body: 'hello @helper-bot',
      mentions: ['helper-bot'],
    })
  ).json()) as { thread: { id: string } };
  const bodies = async (): Promise<string[]> => {
    const { comments } = (await (await api(cluster, 'GET', `/threads/${thread.id}`)).json()) as {
      comments: { body: string }[];
    };
    return comments.map(({ body }) => body);
  };
  await until(async () => (await bodies()).length > 1);
  await api(cluster, 'POST', `/threads/${thread.id}/comments`, {
    userId: 'bea',
    body: 'again @helper-bot',
    mentions: ['helper-bot'],
  });
  await until(async () => (await bodies()).length > 3);
  t.strictSame((await bodies()).toSorted(), [
    'You said: again @helper-bot',
    'You said: hello @helper-bot',
    'again @helper-bot',
    'hello @helper-bot',
  ]);
  t.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 400, 'not without a signature');
});

/** Compiles `.vue` files as a build tool of Vue does that knows the widget as a custom element. */
const vueFiles: Plugin = {
  name: 'vue-files',
  setup({ onLoad }) {
    onLoad({ filter: /\.vue$/ }, ({ path }) => {
      const { descriptor } = parse(example(path.slice(examples.pathname.length)), { filename: path });
      const templateOptions = { compilerOptions: { isCustomElement: (tag: string) => tag.startsWith('collab-') } };
      return {
        contents: compileScript(descriptor, { id: 'app', inlineTemplate: true, templateOptions }).content,
        loader: 'js',
      };
    });
  },
};

/** Bundles an example for a page, with the packages that are installed here. */
async function bundle(path: string): Promise<string> {
  const folder = new URL(path.slice(0, path.lastIndexOf('/')), examples).pathname;
  const { outputFiles } = await build({
    stdin: { contents: example(path), resolveDir: folder, sourcefile: path, loader: 'jsx' },
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    plugins: [vueFiles],
    define: {
      'process.env.NODE_ENV': '"production"',
      __VUE_OPTIONS_API__: 'false',
      __VUE_PROD_DEVTOOLS__: 'false',
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
    },
  });
  return outputFiles[0]?.text ?? '';
}

/** The page of a bundle, which is `/app.js`. */
const HOST = `<!doctype html><html lang="en"><title>Example</title><script type="module" src="${cluster.url}/widget.js"></script><div id="app"></div><script type="module" src="/app.js"></script></html>`;

/**
 * A server that has the page, its script and, handed on to the endpoint, `/collab-token`, as an application has. It
 * ends with the test.
 */
async function application(t: Test, tokenUrl: string, page: string, script = ''): Promise<string> {
  const server = createServer((request, response) => {
    const type = request.url === '/app.js' ? 'text/javascript' : 'text/html';
    const content =
      request.method === 'POST'
        ? fetch(tokenUrl, { method: 'POST' }).then((answer) => answer.text())
        : Promise.resolve(request.url === '/app.js' ? script : page);
    void content.then((text) => response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` }).end(text));
  });
  t.teardown(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

t.test('pages', { skip: skipReason }, async (t) => {
  const browser = await openBrowser(t);
  const tokenUrl = await serve(t, process.execPath, 'node-token-endpoint/server.js', signing);
  const pages: readonly { readonly name: string; readonly text: string; readonly script?: string }[] = [
    { name: 'html/index.html', text: example('html/index.html') },
    { name: 'react/app.jsx', text: HOST, script: await bundle('react/app.jsx') },
    { name: 'vue/app.vue', text: HOST, script: await bundle('vue/main.js') },
  ];
  for (const { name, text, script } of pages) {
    await t.test(`${name} | shows the thread as the user of the token endpoint`, async (t) => {
      const page = await browser.newPage();
      page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) t.fail(`the page logged: ${message.text()}`);
      });
      await page.goto(await application(t, tokenUrl, text, script));
      await page.locator('collab-comments .pin').first().click();
      await page.locator('collab-comments .popover').getByText('Is this sentence true?').waitFor();
      if (script !== undefined) await page.getByText('Open threads: 1', { exact: true }).waitFor();
      await page.locator('collab-comments .popover').getByLabel('Reply…').fill(`Yes, from ${name}`);
      await page.keyboard.press('Enter');
      await until(async () =>
        JSON.stringify(await (await api(cluster, 'GET', '/rooms/docs%2Fintro?include=comments')).json()).includes(
          `Yes, from ${name}`,
        ),
      );
      await page.close();
    });
  }
  t.match(await (await api(cluster, 'GET', '/users/ann')).json(), { user: { name: 'Ann Lee' } });
});
