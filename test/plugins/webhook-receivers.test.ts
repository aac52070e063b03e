import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { newSecret, sign } from '../../plugins/webhook/signature.ts';
import { stablePort, until } from '../helpers/cluster.ts';
import { readSource } from '../helpers/sources.ts';

interface Language {
  readonly fence: string;
  readonly file: string;
  /** The command whose success shows that the language is on this machine. */
  readonly version: readonly [command: string, argument: string];
  run(file: string, port: number): readonly string[];
}

const languages: readonly Language[] = [
  {
    fence: 'js',
    file: 'receiver.mjs',
    version: [process.execPath, '--version'],
    run: (file) => [process.execPath, file],
  },
  { fence: 'python', file: 'receiver.py', version: ['python3', '--version'], run: (file) => ['python3', file] },
  { fence: 'go', file: 'receiver.go', version: ['go', 'version'], run: (file) => ['go', 'run', file] },
  {
    fence: 'php',
    file: 'receiver.php',
    version: ['php', '--version'],
    run: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
  },
];

const secret = newSecret();
const body = JSON.stringify({
  type: 'comment.created',
  timestamp: '2026-01-05T12:00:00.000Z',
  data: { body: 'Grüße 👋' },
});

for (const { fence, file, version, run } of languages) {
  const isThere = spawnSync(version[0], [version[1]]).status === 0;
  t.test(
    `the receiver in docs/webhooks.md written in ${fence} verifies deliveries`,
    { skip: isThere ? false : `${version[0]} is not installed` },
    async (t) => {
      const path = join(t.testdir(), file);
      writeFileSync(path, codeOf(fence));
      const port = await stablePort();
      const output = start(t, run(path, port), port);
      const url = `http://127.0.0.1:${port}/`;
      await until(
        () =>
          fetch(url, { method: 'POST', body: '' }).then(
            () => true,
            () => false,
          ),
        60_000,
      );

      const now = Math.floor(Date.now() / 1_000);
      const send = async (timestamp: number, signature: string, sent = body): Promise<number> =>
        (
          await fetch(url, {
            method: 'POST',
            headers: { 'webhook-id': 'evt_1', 'webhook-timestamp': String(timestamp), 'webhook-signature': signature },
            body: sent,
          })
        ).status;
      t.equal(await send(now, sign([secret], 'evt_1', now, body)), 204);
      t.equal(await send(now, sign([newSecret(), secret], 'evt_1', now, body)), 204, 'the second of two signatures');
      t.equal(await send(now, sign([newSecret()], 'evt_1', now, body)), 401, 'signed with another secret');
      t.equal(await send(now, sign([secret], 'evt_2', now, body)), 401, 'another id');
      t.equal(await send(now, sign([secret], 'evt_1', now, body), `${body} `), 401, 'another body');
      t.equal(await send(now - 400, sign([secret], 'evt_1', now - 400, body)), 401, 'an old timestamp');
      t.equal(await send(now, ''), 401, 'no signature');
      await until(() => output().includes('Grüße 👋'));
    },
  );
}

t.test('the receivers in docs/webhooks.md do not start without a secret that nobody can guess', (t) => {
  for (const { fence, file, version, run } of languages.filter(
    ({ fence: name }) => name === 'js' || name === 'python',
  )) {
    if (spawnSync(version[0], [version[1]]).status !== 0) continue;
    const path = join(t.testdir(), file);
    writeFileSync(path, codeOf(fence));
    const [command = '', ...args] = run(path, 0);
    for (const weak of ['', 'whsec_', 'whsec_…', 'whsec_AAAA']) {
      const { status } = spawnSync(command, args, {
        env: { ...process.env, WEBHOOK_SECRET: weak, PORT: '0' },
        encoding: 'utf8',
        timeout: 60_000,
      });
      t.equal(status, 1, `${fence} with ${JSON.stringify(weak)}`);
    }
  }
  t.end();
});

/** Starts a receiver; returns what it has printed so far. It is ended with the test. */
function start(t: Test, [command = '', ...args]: readonly string[], port: number): () => string {
  const child: ChildProcess = spawn(command, args, {
    env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  t.teardown(async () => {
    // The group, because `go run` starts the program as its child.
    if (child.pid !== undefined && child.exitCode === null) {
      process.kill(-child.pid, 'SIGKILL');
      await once(child, 'exit');
    }
  });
  return () => output;
}

function codeOf(fence: string): string {
  const code = new RegExp(`^\`\`\`${fence}\n([^]*?)^\`\`\`$`, 'm').exec(readSource('docs/webhooks.md'))?.[1];
  if (code === undefined) throw new Error(`docs/webhooks.md has no ${fence}`);
  return code;
}
