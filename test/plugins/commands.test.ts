import t, { type Test } from 'tap';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { collab, collabJson } from '../helpers/command.ts';
import { startMailServer } from '../helpers/mail-server.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { startReceiver, SWITCHES } from '../helpers/receiver.ts';

const execute = promisify(execFile);
/** Runs a program without what the test runner loads into its children. */
const run = (file: string, args: readonly string[], { cwd }: { cwd: string }) =>
  execute('env', ['--unset=NODE_OPTIONS', file, ...args], { cwd });
const top = fileURLToPath(new URL('../..', import.meta.url));
const good = join(top, 'test/fixtures/plugins/good.mjs');
const tsc = join(top, 'node_modules/typescript/bin/tsc');

function folder(t: Test, plugins: readonly object[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'collab-plugin-cli-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins }));
  return dir;
}

t.test('plugins are listed and checked, and their commands run', async (t) => {
  const dir = folder(t, [{ use: good, environments: { staging: { enabled: false } } }]);
  await newFolder(dir);
  const inside = true;
  const { items } = await collabJson<{ items: { name: string; state: string; environments: object }[] }>(
    t,
    ['plugin', 'list', '--dir', dir],
    { inside },
  );
  t.match(items, [
    { name: 'good', state: 'enabled', environments: { '*': true, staging: false } },
    { name: 'webhook' },
  ]);
  t.match(
    (await collab(['plugin', 'check', '--dir', dir], { inside })).stdout,
    /good 1\.2\.3: ok\n {2}filter comment\.create/,
  );
  t.strictSame(await collabJson(t, ['good', 'list', '--env', 'default', '--dir', dir]), { items: [] });
  const unknown = await collab(['good', 'list', '--env', 'nope', '--dir', dir]);
  t.match(unknown, { code: 1, stderr: /No environment has the id or slug nope/ });
  const unconfigured = await collab(['web-push', 'keys', '--env', 'default', '--dir', dir]);
  t.match(unconfigured, {
    code: 2,
    stderr: /^collab: plugin web-push: config\.subject is required\n[^]*`collab plugin check --dir/,
  });
  const check = await collab(['plugin', 'check', 'email', '--dir', dir], { inside });
  t.match(check, {
    code: 2,
    stdout:
      /^plugin email: config\.smtp is required\n {2}options: smtp \(required\), from \(required\), replyTo, delayMinutes, linkTemplate, templates\n$/,
  });
  t.match((await collab(['good', 'list', '--help', '--dir', dir])).stdout, /collab good list --env default/);
});

t.test('a command loads only the plugin that has it, and says what is wrong with its options', async (t) => {
  const dir = folder(t, [
    { use: './other.mjs' },
    { use: 'moderation-rules' },
    { use: good, config: { wrod: 'x' } },
    { use: './computed.mjs' },
  ]);
  const plugin = (name: string): string => `import { definePlugin } from 'collab/plugin';
import { appendFileSync } from 'node:fs';
appendFileSync(${JSON.stringify(join(dir, 'loaded'))}, ${JSON.stringify(`${name} `)});
export default definePlugin({ name: ${name}, version: '1.0.0', apiVersion: 1, config: { type: 'object', properties: {} }, setup(host) { host.command({ name: 'hi', summary: 'Say hi.', examples: ['x'] }, () => ({ json: {}, text: 'hi' })); } });
`;
  writeFileSync(join(dir, 'other.mjs'), plugin("'other'"));
  writeFileSync(join(dir, 'computed.mjs'), plugin("'com' + 'puted'"));
  await newFolder(dir);
  t.match(await collab(['good', 'list', '--env', 'default', '--dir', dir]), {
    code: 2,
    stderr: /plugin good: config\.wrod is not an option; did you mean word\?/,
  });
  t.match(await collab(['webhook', 'list', '--env', 'default', '--dir', dir]), { code: 0 });
  t.notOk(existsSync(join(dir, 'loaded')), 'no other plugin was loaded');
  t.match(await collab(['computed', 'hi', '--env', 'default', '--dir', dir]), { code: 0, stdout: /^hi/ });
  t.match(await collab(['nobody', 'hi', '--dir', dir]), { code: 2, stderr: /unknown command 'nobody'/ });
});

t.test('a test that fails shows the reason, and exits with 1', async (t) => {
  const [receiver, smtp] = [await startReceiver(t), await startMailServer(t)];
  const dir = folder(t, [
    { use: 'webhook', allowPrivate: true },
    {
      use: 'email',
      config: { smtp: { host: '127.0.0.1', port: smtp.port, tls: 'none' }, from: 'comments@example.com' },
    },
  ]);
  await newFolder(dir);
  const at = ['--env', 'default', '--dir', dir];
  const { id } = await collabJson<{ id: string }>(t, ['webhook', 'add', '--url', receiver.url, ...at]);
  t.match(await collab(['webhook', 'test', id, ...at]), { code: 0, stderr: '' });
  receiver.answer = 410;
  t.match(await collab(['webhook', 'test', id, ...at]), {
    code: 1,
    stdout: /did not accept the test message: answered 410/,
    stderr: 'collab: The test failed.\n',
  });
  receiver.answer = (response) => void response.socket?.write(SWITCHES);
  t.match(await collab(['webhook', 'test', id, ...at]), {
    code: 1,
    stdout: /did not accept the test message: answered 101: it switched to another protocol/,
    stderr: 'collab: The test failed.\n',
  });
  receiver.answer = { status: 302, headers: { Location: receiver.url } };
  const redirected = await collab(['webhook', 'test', id, ...at, '--json']);
  t.match(redirected, { code: 1, stderr: '{"error":{"code":"failed","message":"The test failed.","remedies":[]}}\n' });
  t.match(JSON.parse(redirected.stdout), { ok: false, status: 302, reason: /redirects are not followed/ });

  t.match(await collab(['email', 'test', 'ann@example.com', ...at]), { code: 0, stderr: '' });
  smtp.refusal = { code: 550, message: 'No such user' };
  t.match(await collab(['email', 'test', 'ann@example.com', ...at]), {
    code: 1,
    stdout: /The mail was not sent: .*550 No such user/,
    stderr: 'collab: The test failed.\n',
  });
  t.match(await collabJson(t, ['email', 'test', 'ann@example.com', ...at], { code: 1 }), {
    ok: false,
    reason: /550 No such user/,
  });
});

t.test('`webhook add` says at once that nothing goes to a private address, and what allows it', async (t) => {
  const dir = folder(t, []);
  await newFolder(dir);
  const at = ['--env', 'default', '--dir', dir];
  const hint =
    /127\.0\.0\.1 is private or local \("allowPrivate": true in the entry of the plugin in config\.json allows it\)/;
  const { id, warning } = await collabJson<{ id: string; warning: string }>(t, [
    'webhook',
    'add',
    '--url',
    'http://127.0.0.1:9/',
    ...at,
  ]);
  t.match(warning, hint);
  t.match(await collab(['webhook', 'add', '--url', 'http://127.0.0.1:9/', ...at]), { code: 0, stdout: hint });
  t.match(await collab(['webhook', 'test', id, ...at]), { code: 1, stdout: hint });
  t.match(await collabJson(t, ['webhook', 'add', '--url', 'https://example.com/', ...at]), { warning: null });
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins: [{ use: 'webhook', allowPrivate: true }] }));
  t.match(await collabJson(t, ['webhook', 'add', '--url', 'http://127.0.0.1:9/', ...at]), { warning: null });
});

t.test(
  'a new plugin and the examples of the guide beside it install, have correct types, pass the test and load, without a network',
  async (t) => {
    const dir = folder(t, []);
    mkdirSync(join(dir, 'node_modules'));
    t.equal((await collab(['plugin', 'new', 'my-plugins'], { cwd: dir })).code, 0);
    const cwd = join(dir, 'my-plugins');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund'], { cwd });
    const guide = readFileSync(join(top, 'docs/plugins.md'), 'utf8');
    const blocks = [...guide.matchAll(/```js (\w+)\n(.*?)```/gs)];
    t.equal(blocks.length, 3);
    const files = [...guide.matchAll(/Paste it into `my-plugins\/([\w-]+\.js)`/g)].map(([, file = '']) => file);
    t.equal(files.length, blocks.length, 'the guide says where to paste each');
    for (const [index, [, , code = '']] of blocks.entries()) writeFileSync(join(cwd, files[index] ?? ''), code);
    // Several checkers, as it starts otherwise, check the same types.
    await run(process.execPath, [tsc, '--singleThreaded'], { cwd }).catch((error: { stdout?: string }) =>
      t.fail(error.stdout ?? 'no output'),
    );
    await run('npm', ['test'], { cwd }).catch((error: { stdout?: string }) => t.fail(error.stdout ?? 'no output'));
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins: [{ use: './my-plugins/index.js' }] }));
    t.match(await collab(['plugin', 'check', '--dir', dir], { inside: true }), {
      code: 0,
      stdout: /my-plugins 0\.1\.0: ok/,
    });
    writeFileSync(
      join(dir, 'config.json'),
      /```json\n(\{\n {2}"plugins": \[\n {4}\{ "use": "\.\/my-plugins\/.*?)```/s.exec(guide)?.[1] ?? '',
    );
    t.match(await collab(['plugin', 'check', '--dir', dir]), {
      code: 0,
      stdout: /no-phone-numbers 1\.0\.0: ok.*sms 1\.0\.0: ok.*comment-counter 1\.0\.0: ok/s,
    });
    t.match(await collab(['plugin', 'new', 'my-plugins'], { cwd: dir, inside: true }), {
      code: 1,
      stderr: /exists already/,
    });
    t.match(await collab(['plugin', 'new', 'Greeter!'], { cwd: dir, inside: true }), { code: 2, stderr: /must match/ });
  },
);
