import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { collab, collabJson, type InitOutput, startServer } from '../helpers/cli.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const folder = tempFolder(t);
const dir = join(folder, 'live');
const file = join(folder, 'all.ndjson');
let keys: InitOutput;

async function threads(url: string): Promise<unknown> {
  return (await fetch(`${url}/api/v1/rooms/lobby/threads`, { headers: { Authorization: `Bearer ${keys.secretKey}` } })).json();
}

t.before(async () => {
  keys = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  await collabJson(t, ['env', 'create', 'staging', '--dir', dir]);
  await collabJson(t, ['user', 'add', 'ann', '--env', 'default', '--name', 'Ann', '--dir', dir]);
});

t.test('beside a running server everything is written to a file, which comes in elsewhere and goes out the same', async (t) => {
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
  for (let n = 0; n < 5; n++) await fetch(`${server.url}/api/v1/rooms/lobby/threads`, { method: 'POST', headers, body: JSON.stringify({ userId: 'ann', body: `thread ${n}` }) });
  const made = await collabJson<object>(t, ['export', file, '--with-secrets', '--dir', dir]);
  t.match(made, { file, withSecrets: true, environments: 2, missing: [], bytes: statSync(file).size });
  t.equal(statSync(file).mode & 0o077, 0);
  t.strictSame(readdirSync(folder).filter((name) => name.includes('partial')), []);

  const other = join(folder, 'other');
  await collabJson(t, ['init', '--dir', other]);
  await collabJson(t, ['env', 'delete', 'default', '--yes', '--dir', other]);
  const away = await startServer(t, other, ['--workers', '1']);
  const taken = await collabJson<{ environments: { slug: string }[] }>(t, ['import', file, '--dir', other]);
  t.strictSame(taken.environments.map(({ slug }) => slug), ['default', 'staging']);
  t.strictSame(await threads(away.url), await threads(server.url), 'the running server has it at once, for the same key');
  const { code, stdout, stderr } = await collab(['export', '-', '--with-secrets', '--dir', other]);
  t.strictSame([code, stderr], [0, '']);
  t.equal(stdout, readFileSync(file, 'utf8'));
  t.equal(await away.end(), 0);
  t.equal(await server.end(), 0);
});

t.test('standard output and input work in pipes', (t) => {
  const other = join(folder, 'piped');
  const run = (command: string): string =>
    execFileSync('sh', ['-c', command], { encoding: 'utf8', env: { ...process.env, NODE: process.execPath, BIN: 'dist/bin/collab.js', FROM: dir, TO: other, FILE: file }, stdio: ['ignore', 'pipe', 'pipe'] });
  run('"$NODE" "$BIN" init --dir "$TO" && "$NODE" "$BIN" env delete default --yes --dir "$TO"');
  t.match(run('"$NODE" "$BIN" export - --env default --dir "$FROM" | "$NODE" "$BIN" import - --json --dir "$TO"'), /"slug":"default"/);
  t.equal(run('"$NODE" "$BIN" export - --env default --dir "$FROM" | head -n 1'), '{"type":"export","format":1}\n');
  t.end();
});

t.test('what cannot be done is refused, and nothing is half done', async (t) => {
  t.match(await collab(['export', file, '--dir', dir]), { code: 1, stdout: '', stderr: /is there already: nothing was written/ });
  t.match(await collab(['export', join(folder, 'x'), '--env', 'nope', '--dir', dir]), { code: 1, stdout: '', stderr: /nope/ });
  t.match(await collab(['import', file, '--dir', dir]), { code: 1, stdout: '', stderr: /Line 2: The environment default .* is here already\. Nothing was taken in\.\n {2}→ To leave it as it is .*--skip-existing/ });
  t.match(await collab(['import', file, '--skip-existing', '--dir', dir]), { code: 0, stdout: /skipped +default, staging/ });
  t.match(await collab(['import', join(folder, 'absent'), '--dir', dir]), { code: 1, stdout: '', stderr: /ENOENT/ });
  const cut = join(folder, 'cut.ndjson');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(cut, lines.slice(0, 6).join('\n'));
  const other = join(folder, 'empty');
  await collabJson(t, ['init', '--dir', other]);
  await collabJson(t, ['env', 'delete', 'default', '--yes', '--dir', other]);
  t.match(await collab(['import', cut, '--dir', other]), { code: 1, stdout: '', stderr: /the file ends in the middle of the environment default\. Nothing was taken in\./ });
  t.strictSame(await collabJson(t, ['env', 'list', '--dir', other]), { items: [] });
});
