import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readSums } from '../../src/cli/backup/backup-folder.ts';
import { lockDataFolder } from '../../src/cluster/data-folder-lock.ts';
import { collab as collabApart, collabCommand, type InitOutput, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { withoutStrace } from '../helpers/unflushed.ts';

const folder = tempFolder(t);
const backup = join(folder, 'backup');
const old = join(folder, 'old');
let restored: InitOutput;
let before: InitOutput;

async function environmentOf(t: Test, dir: string): Promise<string | undefined> {
  const { items } = await collabJson<{ items: { id: string }[] }>(t, ['env', 'list', '--dir', dir]);
  return items.length === 1 ? items[0]?.id : undefined;
}

function copyOfOld(name: string): string {
  const dir = join(folder, name);
  cpSync(old, dir, { recursive: true });
  return dir;
}

t.before(async () => {
  restored = await newFolder(join(folder, 'source'));
  await collabJson(t, ['backup', backup, '--dir', join(folder, 'source')]);
  before = await collabJson<InitOutput>(t, ['init', '--dir', old]);
  mkdirSync(join(old, 'data', 'files', 'env_old'), { recursive: true });
});

/**
 * Restores over `dir` and kills the command just before it renames one of `paths` (any path if there are none) for the
 * `count`th time. Returns whether it got that far.
 */
async function killAtRename(dir: string, count: number, paths: readonly string[]): Promise<boolean> {
  // One file system thread, because strace counts the calls of each thread separately.
  const args = [
    '-f',
    '-o',
    '/dev/null',
    ...paths.flatMap((path) => ['-P', join(dir, path)]),
    '-e',
    'trace=rename',
    '-e',
    `inject=rename:signal=SIGKILL:when=${count}`,
    ...collabCommand,
    'restore',
    backup,
    '--dir',
    dir,
    '--yes',
  ];
  const child = spawn('strace', args, { stdio: 'ignore', env: { ...process.env, UV_THREADPOOL_SIZE: '1' } });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code !== 0;
}

t.test(
  'a restore that is killed before any of its moves is completed by the next command, or has changed nothing',
  { skip: withoutStrace(), timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    /** Whose data there is after such a kill; null if the restore was not killed. */
    const killed = async (name: string, count: number, paths: readonly string[] = []): Promise<string | null> => {
      const dir = copyOfOld(`${name}${count}`);
      if (!(await killAtRename(dir, count, paths))) return null;
      const id = await environmentOf(t, dir);
      const is = id === restored.environment.id ? 'new' : id === before.environment.id ? 'old' : 'neither';
      const left = readdirSync(join(dir, 'data')).filter((entry) => entry.startsWith('before-restore-'));
      t.equal(left.length, is === 'new' ? 1 : 0);
      if (is === 'new') t.strictSame(readdirSync(join(dir, 'data', left[0] ?? '')).sort(), ['files', 'store']);
      t.equal(existsSync(join(dir, 'data', 'files', 'env_old')), is === 'old', 'files and store belong together');
      return is;
    };
    // The file system thread renames five times: the commit, then the old and new files, then the old and new store.
    // The main thread, which opens the store, renames up to twice before that.
    for (let round = 0; round < CRASH_FACTOR; round++) {
      const outcomes: string[] = [];
      for (
        let is = await killed(`any${round}-`, 1);
        is !== null;
        is = await killed(`any${round}-`, outcomes.length + 1)
      )
        outcomes.push(is);
      t.match(outcomes.join(' '), /^old .*new new new$/);
      t.equal(await killed(`files${round}-`, 1, ['data/files']), 'new', 'before the old files are taken away');
    }
  },
);

t.test('start completes it too, doctor reports it, and a second restore starts over', async (t) => {
  const dir = copyOfOld('half');
  const ready = join(dir, 'data', 'restoring-2026-01-02T03-04-05.678Z');
  const aside = join(dir, 'data', 'before-restore-2026-01-02T03-04-05.678Z');
  cpSync(backup, ready, { recursive: true });
  mkdirSync(aside);
  renameSync(join(dir, 'data', 'store'), join(aside, 'store'));
  mkdirSync(join(dir, 'data', '.restore-1'));
  const { stdout } = await collab(['doctor', '--dir', dir, '--json'], { inside: true });
  t.match(
    (JSON.parse(stdout) as { checks: { name: string }[] }).checks.find(({ name }) => name === 'data folder'),
    { level: 'fail', finding: /a restore of .* was interrupted/ },
  );
  t.ok(existsSync(ready), 'doctor changes nothing');

  const lock = await lockDataFolder(join(dir, 'data'));
  t.match(await collabApart(['start', '--dir', dir, '--port', '0']), {
    code: 1,
    stderr: /A restore of .* is in progress, so nothing was changed\.\n {2}→ Run the command again/,
  });
  lock.release();
  const server = await startServer(t, dir, ['--workers', '1']);
  t.match(server.errors(), /Completed a restore that was interrupted\. The old data is now in .*before-restore-2026/);
  t.equal(server.ready.secretKey, undefined, 'no new environment was made');
  await server.end('SIGKILL');
  t.equal(await environmentOf(t, dir), restored.environment.id);
  await collabJson(t, ['restore', backup, '--dir', dir, '--yes']);
  t.notOk(existsSync(join(dir, 'data', '.restore-1')), 'what an earlier one left is removed');
});

t.test('no store is created where the old data was moved aside and there is no store', async (t) => {
  const dir = copyOfOld('aside');
  mkdirSync(join(dir, 'data', 'before-restore-x'));
  renameSync(join(dir, 'data', 'store'), join(dir, 'data', 'before-restore-x', 'store'));
  for (const command of [['start', '--port', '0'], ['init']]) {
    t.match(await collab([...command, '--dir', dir], { inside: true }), {
      code: 1,
      stdout: '',
      stderr:
        /contains no store, only the data that a restore has moved aside\. No new store was created\.\n {2}→ Restore the backup again/,
    });
  }
  t.notOk(existsSync(join(dir, 'data', 'store')));
});

t.test('a backup cannot name files outside of itself', async (t) => {
  const evil = join(folder, 'evil');
  cpSync(backup, evil, { recursive: true });
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'of this machine');
  const sums = readFileSync(join(backup, 'SHA256SUMS'), 'utf8');
  const hash = createHash('sha256').update('of this machine').digest('hex');
  const refused = async (text: string, stderr: RegExp): Promise<void> => {
    writeFileSync(join(evil, 'SHA256SUMS'), text);
    const manifest = JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8')) as object;
    writeFileSync(
      join(evil, 'manifest.json'),
      JSON.stringify({ ...manifest, sumsSha256: createHash('sha256').update(text).digest('hex') }),
    );
    const to = join(folder, 'from evil');
    t.match(await collab(['restore', evil, '--dir', to]), { code: 1, stdout: '', stderr });
    t.notOk(existsSync(to), 'no folder is left');
  };
  await refused(
    `${sums}${hash}  ../secret\n`,
    /SHA256SUMS was not written by `collab backup`, or was changed: it contains "\.\.\/secret"\. Nothing was restored/,
  );
  for (const name of [
    'files/../../secret',
    'files/e/../../../secret',
    secret,
    'files/e/d/../x',
    'files/e/.holds/x',
    'files//d/x',
    'config.json',
    'store/lock.mdb',
    'store/../store/data.mdb',
    '',
  ]) {
    writeFileSync(join(evil, 'SHA256SUMS'), `${sums}${hash}  ${name}\n`);
    await t.rejects(
      readSums(evil),
      { name: 'Failure', message: /was not written by `collab backup`, or was changed: it contains / },
      name,
    );
  }
  await refused('', /does not list the store\. Nothing was restored/);
  mkdirSync(join(evil, 'files', 'env_x'), { recursive: true });
  mkdirSync(join(folder, 'elsewhere'));
  writeFileSync(join(folder, 'elsewhere', 'file_x'), 'of this machine');
  symlinkSync(join(folder, 'elsewhere'), join(evil, 'files', 'env_x', 'linked'));
  await refused(
    `${sums}${hash}  files/env_x/linked/file_x\n`,
    /is damaged: files\/env_x\/linked\/file_x is missing, is a symbolic link, or was changed/,
  );
  mkdirSync(join(evil, 'files', 'env_x', 'file_'));
  symlinkSync(secret, join(evil, 'files', 'env_x', 'file_', 'file_x'));
  await refused(`${sums}${hash}  files/env_x/file_/file_x\n`, /is damaged: files\/env_x\/file_\/file_x/);
});
