import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { renderExample } from '../../src/config/example.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('the example is a valid configuration', async (t) => {
  const dir = tempFolder(t);
  const { code, stdout } = await collab(['config', 'example']);
  t.equal(code, 0);
  t.equal(stdout, renderExample());
  writeFileSync(join(dir, 'config.json'), stdout);
  t.match(await collabJson(t, ['config', 'check', '--dir', dir]), { valid: true, config: { port: 8787 } });
});

t.test('check shows each value and its source', async (t) => {
  const dir = tempFolder(t);
  writeFileSync(join(dir, 'config.json'), '{"port": 9000}');
  const env = { COLLAB_RATE_LIMIT_PER_MINUTE: '7' };
  t.match(await collabJson(t, ['config', 'check', '--dir', dir], { env }), {
    valid: true,
    file: join(dir, 'config.json'),
    config: { port: 9000, rateLimit: { perMinute: 7 }, dataDir: join(dir, 'data') },
    sources: { port: join(dir, 'config.json'), 'rateLimit.perMinute': 'the variable COLLAB_RATE_LIMIT_PER_MINUTE' },
  });
  const { stdout } = await collab(['config', 'check', '--dir', dir], { env });
  t.match(stdout, /^The configuration is valid\./);
  t.match(stdout, /port +9000 +.*config\.json/);
  t.match(stdout, /host +127\.0\.0\.1 +default/);
});

t.test('check reports a missing file', async (t) => {
  const dir = tempFolder(t);
  t.match(await collabJson(t, ['config', 'check', '--dir', dir]), { valid: true, file: null });
  t.match(await collab(['config', 'check', '--dir', dir]), { code: 0, stdout: /There is no .*config\.json/ });
});

t.test('check reports a missing folder', async (t) => {
  const dir = join(tempFolder(t), 'nowhere');
  const { code, stdout, stderr } = await collab(['config', 'check', '--dir', dir, '--json']);
  t.equal(code, 2);
  t.match(JSON.parse(stdout), {
    valid: false,
    problems: [{ path: '', reason: /^The folder does not exist/, source: dir }],
  });
  t.match(JSON.parse(stderr), {
    error: { code: 'invalid_configuration', message: /^The folder does not exist\. .*nowhere\)$/ },
  });
});

t.test('check exits with 2 and reports every problem', async (t) => {
  const dir = tempFolder(t);
  writeFileSync(join(dir, 'config.json'), '{"port": "x", "hots": 1}');
  const { code, stdout, stderr } = await collab(['config', 'check', '--dir', dir, '--json']);
  t.equal(code, 2);
  t.match(JSON.parse(stdout), {
    valid: false,
    problems: [{ path: 'port' }, { path: 'hots', reason: 'is not an option; did you mean host?' }],
  });
  t.match(JSON.parse(stderr), {
    error: { message: /The configuration has 2 problems:\n {2}port must be .*\n {2}hots is not an option/ },
  });
  t.match(await collab(['config', 'check', '--dir', dir]), { code: 2, stdout: '' });
});

t.test('secrets are never shown, not even invalid ones', async (t) => {
  const dir = tempFolder(t);
  writeFileSync(
    join(dir, 'config.json'),
    '{"turn": {"urls": ["turn:turn.example.com:3478?transport=udp"], "secret": ["north-pole", "old-pole"]}}',
  );
  const json = await collab(['config', 'check', '--dir', dir, '--json']);
  t.match(JSON.parse(json.stdout), {
    config: { turn: { urls: ['turn:turn.example.com:3478?transport=udp'], secret: ['(hidden)', '(hidden)'] } },
  });
  const table = await collab(['config', 'check', '--dir', dir]);
  t.match(table.stdout, /turn\.secret +\(hidden\)/);
  writeFileSync(join(dir, 'config.json'), '{"turn": {"secret": ["north pole"]}}');
  const refused = await collab(['config', 'check', '--dir', dir]);
  t.match(refused, { code: 2, stderr: /turn\.secret must be a list of secrets of 1 to 256 characters/ });
  t.notMatch(json.stdout + table.stdout + refused.stderr, /pole/);
});
