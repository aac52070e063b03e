import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { projectFiles } from '../helpers/sources.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

// Packs a copy of the sources without a build, installs the file as a user does, and uses the command.

const root = fileURLToPath(new URL('../../', import.meta.url));
const execute = promisify(execFile);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
/** Without the variables that npm sets for its scripts, among them those of `npm test`. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_(?!config_(?:cache|registry|cafile))|COLLAB_|INIT_CWD)/.test(name),
  ),
);

/** Runs a program. tap adds NODE_OPTIONS to what tests start, which npm would hand on to the build. */
function run(program: string, args: readonly string[], cwd = root): Promise<{ stdout: string }> {
  return execute('env', ['-u', 'NODE_OPTIONS', program, ...args], { cwd, env, maxBuffer: 16 * 1024 * 1024 });
}

/** A checkout: the files of the project, with the packages of this one. */
function checkout(folder: string): void {
  for (const path of projectFiles().filter((name) => !/^(?:test|bench)\//.test(name))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path));
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
}

/**
 * Installs a packed file below a folder as `npm install --global` does: with links to the dependencies that its
 * package.json names, and to no others. npm itself, which loads them all anew and takes ten seconds of processor time,
 * does it where tests are repeated.
 */
async function install(file: string, prefix: string): Promise<void> {
  if (CRASH_FACTOR > 1) {
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
    await run('npm', ['install', '--global', '--prefix', prefix, ...flags, file], dirname(file));
    return;
  }
  const place = join(prefix, 'lib/node_modules/collab');
  mkdirSync(place, { recursive: true });
  await run('tar', ['-xzf', file, '-C', place, '--strip-components=1']);
  const { dependencies, bin } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    bin: { collab: string };
  };
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(place, 'node_modules', name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(place, 'node_modules', name));
  }
  mkdirSync(join(prefix, 'bin'));
  symlinkSync(join(place, bin.collab), join(prefix, 'bin/collab'));
}

t.test('npm pack builds a package that installs a working command', async (t) => {
  const folder = tempFolder(t);
  const [source, prefix] = [join(folder, 'source'), join(folder, 'prefix')];
  checkout(source);
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], source);
  const [packed] = JSON.parse(stdout) as { filename: string; size: number; files: { path: string }[] }[];
  const paths = packed?.files.map(({ path }) => path) ?? [];

  t.test('the package has what a server needs, and neither sources, tests nor maps', (t) => {
    for (const path of [
      'dist/bin/collab.js',
      'dist/bin/worker.cjs',
      'dist/plugins/webhook.js',
      'dist/widget/widget.js',
      'dist/sdk/collab.js',
      'dist/client/main.js',
      'dist/types/client/main.d.ts',
      'dist/docs/index.html',
      'docs/cli.md',
      'config.example.json',
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
    ]) {
      t.ok(paths.includes(path), path);
    }
    t.strictSame(
      paths.filter((path) => !/^(?:dist|docs|examples)\/|^[^/]+\.(?:md|json)$|^(?:Dockerfile|LICENSE)$/.test(path)),
      [],
    );
    t.strictSame(
      paths.filter((path) => path.endsWith('.map') || (path.endsWith('.ts') && !path.endsWith('.d.ts'))),
      [],
    );
    t.ok((packed?.size ?? Infinity) < 4_000_000, `${packed?.size} bytes`);
    t.end();
  });

  await install(join(folder, packed?.filename ?? ''), prefix);
  const command = join(prefix, 'bin/collab');
  t.equal((await run(command, ['--version'])).stdout, `${version}\n`);

  t.test('the installed command makes a folder, starts, and takes a comment', async (t) => {
    const data = join(folder, 'data');
    const { stdout: shown } = await run(command, ['init', '--dir', data]);
    t.match(shown, `collab start --dir ${data}`, 'the next steps call it as it is installed');
    const key = /sk_default_\S+/.exec(shown)?.[0] ?? '';
    const child = spawn(command, ['start', '--dir', data, '--port', '0', '--workers', '1', '--json'], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    t.teardown(() => void child.kill('SIGKILL'));
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const { address } = JSON.parse(String((await lines.next()).value)) as { address: string };
    t.equal((await fetch(`${address}/readyz`)).status, 200);
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const send = (method: string, path: string, body: object): Promise<Response> =>
      fetch(`${address}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
    await send('PUT', '/users/ci-bot', { kind: 'bot' });
    t.equal((await send('POST', '/rooms/demo/threads', { userId: 'ci-bot', body: 'Hello' })).status, 201);
    t.equal((await fetch(`${address}/docs`)).status, 200, 'with the pages that the build makes');
    t.equal((await fetch(`${address}/widget.js`)).status, 200);
    child.kill('SIGTERM');
    t.equal(await ended, 0);
    t.ok(existsSync(join(data, 'config.json')));
  });
});
