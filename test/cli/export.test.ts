import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import t from 'tap';
import type { Attachment } from '../../src/model/attachment.ts';
import { wav } from '../fixtures/media.ts';
import { type InitOutput, startServer, withoutProgress } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { formOf } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

const folder = tempFolder(t);
const dir = join(folder, 'live');
const file = join(folder, 'all.ndjson');
let keys: InitOutput;
/** The token of the uploading user, and the URL of the uploaded file. */
let userHeaders: Record<string, string>;
let filePath: string;

async function threads(url: string): Promise<unknown> {
  return (
    await fetch(`${url}/api/v1/rooms/lobby/threads`, { headers: { Authorization: `Bearer ${keys.secretKey}` } })
  ).json();
}

t.before(async () => {
  keys = await newFolder(dir);
  await collabJson(t, ['env', 'create', 'staging', '--dir', dir]);
  await collabJson(t, ['user', 'add', 'ann', '--env', 'default', '--name', 'Ann', '--dir', dir]);
  const token = await userToken(keys, 'ann');
  userHeaders = { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token };
});

t.test(
  'a running server is exported to a file; importing that elsewhere and exporting again gives the same file',
  async (t) => {
    const server = await startServer(t, dir, ['--workers', '1']);
    const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
    for (let n = 0; n < 5; n++)
      await fetch(`${server.url}/api/v1/rooms/lobby/threads`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ userId: 'ann', body: `thread ${n}` }),
      });
    const uploaded = await fetch(`${server.url}/api/v1/upload`, {
      method: 'POST',
      headers: userHeaders,
      body: formOf({ bytes: wav(1), type: 'audio/wav' }),
    });
    filePath = new URL(((await uploaded.json()) as Attachment).url).pathname;
    const made = await collabJson<object>(t, ['export', file, '--with-secrets', '--dir', dir]);
    t.match(made, { file, withSecrets: true, environments: 2, missing: [], bytes: statSync(file).size });
    t.equal(statSync(file).mode & 0o077, 0);
    t.strictSame(
      readdirSync(folder).filter((name) => name.includes('partial')),
      [],
    );

    const other = join(folder, 'other');
    await collabJson(t, ['init', '--dir', other]);
    await collabJson(t, ['env', 'delete', 'default', '--yes', '--dir', other]);
    const away = await startServer(t, other, ['--workers', '1']);
    const taken = await collabJson<{ environments: { slug: string }[] }>(t, ['import', file, '--dir', other]);
    t.strictSame(
      taken.environments.map(({ slug }) => slug),
      ['default', 'staging'],
    );
    t.strictSame(
      await threads(away.url),
      await threads(server.url),
      'the running server has it at once, for the same key',
    );
    t.strictSame(
      Buffer.from(await (await fetch(away.url + filePath, { headers: userHeaders })).arrayBuffer()),
      wav(1),
      'with its files',
    );
    const { code, stdout, stderr } = await collab(['export', '-', '--with-secrets', '--dir', other]);
    t.strictSame([code, withoutProgress(stderr)], [0, '']);
    t.equal(stdout, readFileSync(file, 'utf8'));
  },
);

t.test(
  'an import creates a folder that is missing, empty or only configured, with the contents of the file',
  async (t) => {
    const missing = join(folder, 'new', 'folder');
    const taken = await collabJson<object>(t, ['import', file, '--dir', missing]);
    t.match(taken, {
      dir: missing,
      madeFolder: true,
      environments: [{ slug: 'default' }, { slug: 'staging' }],
      skipped: [],
    });
    t.strictSame(readdirSync(join(missing, 'data')).toSorted(), ['files', 'store'], 'nothing else is left');
    t.strictSame(JSON.parse(readFileSync(join(missing, 'config.json'), 'utf8')), {
      $schema: './config.schema.json',
      host: '127.0.0.1',
      port: 8787,
    });
    t.equal((await collab(['export', '-', '--with-secrets', '--dir', missing])).stdout, readFileSync(file, 'utf8'));

    const empty = join(folder, 'empty-folder');
    mkdirSync(empty);
    t.match(await collab(['import', file, '--dir', empty]), {
      code: 0,
      stdout: new RegExp(
        `Created the folder ${empty} and imported 2 environments\\.[^]*collab(?:\\.js)?'? start --dir ${empty}`,
      ),
    });
    const configured = join(folder, 'configured');
    mkdirSync(configured);
    writeFileSync(join(configured, 'config.json'), '{ "dataDir": "./elsewhere" }');
    await collabJson(t, ['import', file, '--dir', configured]);
    t.ok(existsSync(join(configured, 'elsewhere', 'store')));
  },
);

t.test('a failed import into a new folder leaves no store, whatever was imported before', async (t) => {
  const cut = join(folder, 'half.ndjson');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(cut, lines.slice(0, -2).join('\n'));
  const dir = join(folder, 'failed');
  t.match(await collab(['import', cut, '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /in the middle of the environment staging\. Nothing was imported\./,
  });
  t.notOk(existsSync(dir));
  t.match(await collab(['env', 'list', '--dir', dir]), { code: 1, stderr: /no Collab folder/ });
  mkdirSync(join(dir, 'data', 'files', 'env_old'), { recursive: true });
  t.match(await collab(['import', file, '--dir', dir]), {
    code: 1,
    stderr: /data\/files exists, but there is no store next to it\. Nothing was imported/,
  });
  rmSync(join(dir, 'data', 'files'), { recursive: true });
  await collabJson(t, ['import', file, '--dir', dir]);
});

t.test('a failed import leaves a folder as it was: missing with its parents, empty, or only configured', async (t) => {
  const bad = join(folder, 'bad.ndjson');
  writeFileSync(bad, '{"type":"else"}\n');
  const refuse = async (...path: string[]): Promise<void> => {
    t.match(await collab(['import', bad, '--dir', join(folder, ...path)]), {
      code: 1,
      stdout: '',
      stderr: /Line 1: .* Nothing was imported\./,
    });
  };
  await refuse('newimp');
  t.notOk(existsSync(join(folder, 'newimp')));
  await refuse('deep', 'er', 'newimp');
  t.notOk(existsSync(join(folder, 'deep')));
  mkdirSync(join(folder, 'vacant'));
  await refuse('vacant');
  t.strictSame(readdirSync(join(folder, 'vacant')), []);
  await refuse('vacant', 'newimp');
  t.strictSame(readdirSync(join(folder, 'vacant')), [], 'a folder that existed stays');
  writeFileSync(join(folder, 'vacant', 'config.json'), '{ "dataDir": "./some/where" }');
  await refuse('vacant');
  t.strictSame(readdirSync(join(folder, 'vacant')), ['config.json']);
  mkdirSync(join(folder, 'vacant', 'some'));
  writeFileSync(join(folder, 'vacant', 'some', 'note'), 'mine');
  await refuse('vacant');
  t.strictSame(readdirSync(join(folder, 'vacant', 'some')), ['note']);
});

t.test('a file whose content contradicts its type is refused with the number of its line', async (t) => {
  const lines = readFileSync(file, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.startsWith('{"type":"file"'));
  const forged = join(folder, 'forged.ndjson');
  writeFileSync(
    forged,
    lines
      .with(at, (lines[at] ?? '').replace('"type":"audio"', '"type":"video"').replaceAll('audio/wav', 'video/mp4'))
      .join('\n'),
  );
  const stderr = new RegExp(
    `Line ${at + 1}: data\\.attachment\\.mimeType is wrong\\. The content is audio/wav, not video/mp4 as declared\\. Nothing was imported\\.`,
  );
  t.match(await collab(['import', forged, '--dir', join(folder, 'refused')]), { code: 1, stdout: '', stderr });
});

t.test('standard input and output work in pipes', async (t) => {
  const other = join(folder, 'piped');
  const run = (command: string): string =>
    execFileSync('sh', ['-c', command], {
      encoding: 'utf8',
      env: { ...process.env, NODE: process.execPath, BIN: 'dist/bin/collab.js', FROM: dir, TO: other, FILE: file },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  await newFolder(other);
  await collabJson(t, ['env', 'delete', 'default', '--yes', '--dir', other]);
  t.match(
    run('"$NODE" "$BIN" export - --env default --dir "$FROM" | "$NODE" "$BIN" import - --json --dir "$TO"'),
    /"slug":"default"/,
  );
  t.equal(run('"$NODE" "$BIN" export - --env default --dir "$FROM" | head -n 1'), '{"type":"export","format":1}\n');
});

t.test('impossible exports and imports are refused, and change nothing', async (t) => {
  t.match(await collab(['export', file, '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /exists already, so nothing was written/,
  });
  t.match(await collab(['export', join(folder, 'x'), '--env', 'nope', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /nope/,
  });
  t.match(await collab(['import', file, '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr:
      /Line 2: The environment default .* already exists\. Nothing was imported\.\n {2}→ To keep it .*--skip-existing/,
  });
  t.match(await collab(['import', file, '--skip-existing', '--dir', dir]), {
    code: 0,
    stdout: /skipped +default, staging/,
  });
  t.match(await collab(['import', join(folder, 'absent'), '--dir', dir]), { code: 1, stdout: '', stderr: /ENOENT/ });
  const cut = join(folder, 'cut.ndjson');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(cut, lines.slice(0, 6).join('\n'));
  const other = join(folder, 'empty');
  await collabJson(t, ['init', '--dir', other]);
  await collabJson(t, ['env', 'delete', 'default', '--yes', '--dir', other]);
  t.match(await collab(['import', cut, '--dir', other]), {
    code: 1,
    stdout: '',
    stderr: /the file ends in the middle of the environment default\. Nothing was imported\./,
  });
  t.strictSame(await collabJson(t, ['env', 'list', '--dir', other]), { items: [] });
});
