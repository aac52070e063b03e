import { spawnSync } from 'node:child_process';
import fs, { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createLogger, redact } from '../src/observability/log.ts';
import { RepeatedErrors } from '../src/observability/repeated-errors.ts';
import { readableLine } from '../src/observability/readable-lines.ts';
import { tempFolder } from './helpers/temp-folder.ts';

function capture(level = 'info') {
  const lines: string[] = [];
  const log = createLogger({ level, name: 'web-1', destination: { write: (line: string) => void lines.push(line) } });
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? 'null') as Record<string, unknown> };
}

const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl';
const secretKey = 'sk_default_9TdK2vPq7RbYx3Lm8Nf4Wc6Hs1Gj5Za0Qe';

t.test('a line is one JSON object with level by name, ISO time, pid and worker', (t) => {
  const { log, lines, last } = capture();
  log.info({ port: 8787 }, 'ready');
  const { time, ...rest } = last();
  t.same(rest, { level: 'info', pid: process.pid, worker: 'web-1', port: 8787, msg: 'ready' });
  t.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.equal(lines.length, 1);
  t.ok(lines[0]?.endsWith('}\n') && lines[0].indexOf('\n') === lines[0].length - 1);
  t.end();
});

t.test('of lines that repeat one error, ten are written in a minute, and then how many were left out', (t) => {
  const { log, lines } = capture();
  const error = new Error('the store is gone');
  for (let n = 0; n < 25; n++) log.child({ n }).error({ err: error, environment: `env_${n}` }, 'a task failed');
  t.equal(lines.length, 10);
  log.error({ err: error }, 'another task failed');
  log.error({ err: new Error('another') }, 'a task failed');
  for (let n = 0; n < 15; n++) log.error({ environment: `env_${n}` }, 'a task failed');
  for (let n = 0; n < 3; n++) log.error({ err: error, requestId: `${n}` }, 'a task failed');
  t.equal(lines.length, 30, 'others are not counted with them, and those of requests are all written');

  let now = 0;
  const repeated = new RepeatedErrors(() => now);
  const admitted = (): (number | undefined)[] =>
    Array.from({ length: 12 }, () => repeated.admit(error, 'a task failed')?.left);
  const first = [...Array<number>(10).fill(0), undefined, undefined];
  t.strictSame(admitted(), first);
  now += 59_999;
  t.equal(repeated.admit(error, 'a task failed'), null);
  now += 1;
  t.strictSame(admitted(), [3, ...first.slice(1)]);
  t.end();
});

t.test('what is below the level is not written', (t) => {
  const { log, lines } = capture('warn');
  log.info('nothing');
  log.warn('something');
  t.equal(lines.length, 1);
  t.end();
});

t.test('values under the names of secrets are blotted out at any depth, of any type', (t) => {
  const { log, lines } = capture();
  const names = [
    'authorization',
    'Authorization',
    'Proxy-Authorization',
    'x-service-key',
    'X-Service-Token',
    'x_service_token',
    'cookie',
    'set-cookie',
    'token',
    'accessToken',
    'password',
    'secret',
    'jwtSecret',
    'jwt_secret',
    'secretKey',
    'privateKey',
    'passphrase',
  ];
  for (const name of names) {
    log.info({ [name]: 'hidden-1', deep: { er: [{ [name]: { x: ['hidden-2'] } }, { [name]: 404_404 }] } }, 'x');
    const line = lines.at(-1) ?? '';
    t.notMatch(line, /hidden|404404/, name);
    t.equal((JSON.parse(line) as Record<string, unknown>)[name], '[redacted]');
  }
  t.end();
});

t.test('what only sounds like a secret stays', (t) => {
  const { log, last } = capture();
  const facts = {
    tokenExpiresAt: '2026-01-01',
    keyId: 'key_1',
    kid: 'k1',
    secretsFound: 0,
    note: 'the token is missing',
    publishableKey: 'pk_default_abc',
  };
  log.info(facts, 'a token was refused');
  t.match(last(), { ...facts, msg: 'a token was refused' });
  t.end();
});

t.test('keys and tokens are blotted out wherever they stand in a text', (t) => {
  const texts = [
    `${secretKey}`,
    `GET /x?key=${secretKey}&limit=2`,
    `Bearer ${secretKey}`,
    `the key "${secretKey}" is unknown`,
    `/api/v1/ws?token=${jwt}&epoch=1`,
    `collab.v1, collab.key.pk_default_abc, collab.token.${jwt}`,
    JSON.stringify({ jwtSecret: 'hid"den', other: jwt }),
    `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`,
    `adm_9TdK2vPq7RbYx3Lm8Nf4Wc6Hs1Gj5Za0Qe`,
    `/x?password=hunter2#a`,
  ];
  for (const text of texts) {
    const { log, lines } = capture();
    log.info({ url: text, nested: { list: [text] }, [text]: 1 }, text);
    log.error(new Error(text), 'failed');
    log.child({ requestPath: text }).warn('child');
    const all = lines.join('');
    for (const line of lines) t.doesNotThrow(() => JSON.parse(line) as unknown, 'still JSON');
    t.notMatch(all, /9TdK2v|c2lnbmF0|eyJzdWIi|hid|MfKQ9r|hunter2/, text);
    t.match(all, /\[redacted\]/);
  }
  t.end();
});

t.test('the rest of a text around a secret stays', (t) => {
  const line = redact(`${JSON.stringify({ url: `/api/v1/ws?epoch=1&token=${jwt}&since=7` })}\n`);
  t.same(JSON.parse(line), { url: '/api/v1/ws?epoch=1&token=[redacted]&since=7' });
  t.end();
});

t.test('a long hostile text does not hold the process', (t) => {
  const text = `token${'a-'.repeat(50_000)}`;
  const startedAt = performance.now();
  redact(`${JSON.stringify({ text })}\n`);
  t.ok(performance.now() - startedAt < 1_000);
  t.end();
});

t.test(
  'a line for people has time, level, process, message and fields, the stack of an error, and no control characters',
  (t) => {
    const line = JSON.stringify({
      level: 'warn',
      time: '2026-01-02T03:04:05.678Z',
      pid: 7,
      worker: 'web-1',
      port: 8787,
      name: 'a b="c"',
      msg: 'slow\u001b[2J',
      err: { type: 'Error', message: 'no', stack: 'Error: no\n    at x' },
    });
    t.equal(
      readableLine(line, false),
      '03:04:05.678 WARN  web-1      slow·[2J port=8787 name="a b=\\"c\\""\n  Error: no\n      at x\n',
    );
    t.equal(readableLine(line, true).startsWith('03:04:05.678 \u001b[33mWARN \u001b[0m web-1'), true);
    t.equal(readableLine('no JSON\n', true), 'no JSON\n');
    t.end();
  },
);

const pty = spawnSync('script', ['-qec', 'exit', '/dev/null']).status === 0;
t.test(
  'on a terminal the server logs for people, without colour if NO_COLOR is set',
  { skip: pty ? false : 'no script(1) here' },
  (t) => {
    const program = join(tempFolder(t), 'program.ts');
    writeFileSync(
      program,
      `import { createLogger } from '${new URL('../src/observability/log.ts', import.meta.url).href}';\ncreateLogger({ level: 'info', name: 'primary' }).warn({ token: 'x' }, 'hello');\n`,
    );
    const onTerminal = (env: NodeJS.ProcessEnv): string =>
      spawnSync(
        'script',
        ['-qec', `${process.execPath} --import=${import.meta.resolve('tsx')} ${program}`, '/dev/null'],
        { env: { ...process.env, TERM: 'xterm', ...env }, encoding: 'utf8' },
      ).stdout;
    t.match(onTerminal({ NO_COLOR: '1' }), /^\d\d:\d\d:\d\d\.\d{3} WARN {2}primary {4}hello token=\[redacted\]\r\n$/);
    t.match(onTerminal({ NO_COLOR: '' }), '\u001b[33mWARN \u001b[0m');
    t.end();
  },
);

t.test(
  'lines that cannot be written are kept up to a bound, and written later with the number of those that were dropped',
  async (t) => {
    const written: string[] = [];
    const write = fs.writeSync;
    t.teardown(() => (fs.writeSync = write));
    let isFull = true;
    fs.writeSync = ((fd: number, text: string, ...rest: unknown[]) => {
      if (fd !== 2) return Reflect.apply(write, fs, [fd, text, ...rest]) as number;
      if (isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      written.push(text);
      return Buffer.byteLength(text);
    }) as typeof fs.writeSync;
    const log = createLogger({ level: 'info', name: 'web-1', output: 2 });
    const filling = 'x'.repeat(1_000);
    for (let n = 0; n < 1_100; n++) log.info({ n, filling }, 'while the disk is full');
    isFull = false;
    log.info({ n: 1_100, filling }, 'now there is space, but not for this line');
    const lines = (): Record<string, unknown>[] =>
      written
        .join('')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    await new Promise((resolve) => setImmediate(resolve));
    const { length } = lines().filter(({ n }) => n !== undefined);
    t.ok(length > 800 && length < 1_100, `${length} lines of a megabyte`);
    t.strictSame(
      lines()
        .slice(0, length)
        .map(({ n }) => n),
      Array.from({ length }, (_, n) => n),
      'the first ones, in their order',
    );
    t.match(lines().slice(length), [
      {
        level: 'warn',
        dropped: 1_101 - length,
        msg: 'lines of the log were dropped, because they could not be written',
      },
    ]);
  },
);
