import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import type { Check } from '../../src/cli/doctor/check.ts';
import { checkOwners } from '../../src/cli/doctor/check-owners.ts';
import { loadConfig } from '../../src/config/load.ts';
import { collab, collabJson, type InitOutput, startServer } from '../helpers/cli.ts';
import { noOtherUser, OTHER_UID, type OthersFolder, othersFolder } from '../helpers/other-user.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { uploadSound } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

interface Scene {
  readonly folder: OthersFolder;
  readonly dir: string;
  readonly made: InitOutput;
  /** Runs a command as the user, or as root. */
  readonly as: (uid: number, ...args: readonly string[]) => ReturnType<typeof collab>;
}

let shared: Promise<Scene> | undefined;

/** A Collab folder of another user than root, made by that user once for all tests. */
const scene = (): Promise<Scene> => (shared ??= makeScene(t));

async function makeScene(t: Test): Promise<Scene> {
  const folder = othersFolder(t);
  const dir = join(folder.path, 'collab');
  const { program } = folder;
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir], { uid: OTHER_UID, program });
  return {
    folder,
    dir,
    made,
    as: (uid, ...args) => collab([...args, '--dir', dir], { uid: uid === 0 ? undefined : uid, program, cwd: '/' }),
  };
}

const problems = /bug in Collab|^ +at |restore|no Collab folder|no store/im;

t.test(
  'commands that root calls leave nothing of root in a folder of another user, whose server goes on',
  { skip: noOtherUser },
  async (t) => {
    const { folder, dir, made, as } = await scene();
    const beside = (name: string): string => join(folder.path, name);
    const commands = [
      ['doctor'],
      ['key', 'create', '--env', 'default', '--kind', 'secret'],
      ['backup', beside('backup')],
    ];
    for (const command of commands) {
      const { code, stderr } = await as(0, ...command);
      t.equal(code, 0, `${command.join(' ')} ${stderr}`);
    }
    t.strictSame(folder.foreign(), []);
    t.match(
      (await as(0, 'audit', 'list', '--env', 'default')).stdout,
      /cli root.* key\.create/,
      'the audit log names who called',
    );

    const token = await userToken(made, 'ann');
    const flags = ['--workers', '1'];
    const own = await startServer(t, dir, flags, { uid: OTHER_UID, program: folder.program, cwd: '/' });
    t.equal((await uploadSound(own, made, token)).type, 'audio');
    t.equal((await as(0, 'status')).code, 0, 'beside the running server');
    t.equal((await uploadSound(own, made, token)).type, 'audio');
    await own.end('SIGKILL');

    const ofRoot = await startServer(t, dir, flags, { program: folder.program, cwd: '/' });
    t.equal(uidOf(ofRoot.ready.pid), OTHER_UID, 'a server that root starts is one of the owner');
    t.equal((await uploadSound(ofRoot, made, token)).type, 'audio');
    await ofRoot.end('SIGKILL');
    t.strictSame(folder.foreign(), []);
  },
);

t.test(
  'code of the plugins that a folder of another user names never runs as root',
  { skip: noOtherUser },
  async (t) => {
    const { path, program } = othersFolder(t);
    const dir = join(path, 'collab');
    mkdirSync(dir);
    chownSync(dir, OTHER_UID, OTHER_UID);
    const loaded = join(path, 'loaded-by');
    writeFileSync(
      join(dir, 'mine.mjs'),
      `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(loaded)}, String(process.getuid()));\nexport default {};\n`,
    );
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins: [{ use: './mine.mjs' }] }));
    for (const words of [
      ['completion', 'bash'],
      ['mine', 'list'],
      ['start', '--port', '0'],
    ]) {
      rmSync(loaded, { force: true });
      await collab([...words, '--dir', dir], { program, cwd: '/' });
      t.equal(readFileSync(loaded, 'utf8'), String(OTHER_UID), words.join(' '));
    }
  },
);

t.test(
  'what root has left earlier is named with the user and the command that corrects it',
  { skip: noOtherUser },
  async (t) => {
    const { dir, as } = await scene();
    const data = join(dir, 'data');
    const file = join(data, 'store', 'data.mdb');
    chownSync(file, 0, 0);
    const refused = await as(OTHER_UID, 'start', '--port', '0', '--workers', '1');
    t.equal(refused.code, 1);
    t.match(
      `${refused.stdout}${refused.stderr}`,
      new RegExp(
        `The user uid ${OTHER_UID} may not use ${file}, which belongs to root \\(uid 0\\)[^]*chown -R ${OTHER_UID}:${OTHER_UID} ${file} `,
      ),
    );
    t.notMatch(`${refused.stdout}${refused.stderr}`, problems);
    const { code, stdout } = await as(0, 'doctor');
    t.equal(code, 1);
    t.match(
      stdout,
      new RegExp(
        `fail +owners .*such as ${file}, belongs to root[^]*→ As root: chown -R ${OTHER_UID}:${OTHER_UID} ${data}\n`,
      ),
    );
    t.notMatch(stdout, problems);

    const check = (): Promise<Check> => checkOwners({ dir, config: loadConfig({ dir, env: {}, flags: {} }) });
    chownSync(file, OTHER_UID, OTHER_UID);
    t.match(await check(), { level: 'ok' });
    chmodSync(file, 0o400);
    t.match(await check(), { level: 'fail', finding: file, remedy: `chmod -R u+rwX ${data}` });
    chmodSync(file, 0o600);
    chownSync(data, 0, 0);
    t.match(await check(), { level: 'fail', finding: `belong to uid ${OTHER_UID}`, remedy: `chown -R 0:0 ${data}` });
    chownSync(data, OTHER_UID, OTHER_UID);
  },
);

t.test('a user who may not use a folder is told so, and whose it is', { skip: noOtherUser }, async (t) => {
  const { dir, as } = await scene();
  chmodSync(join(dir, 'config.json'), 0o644);
  chmodSync(dir, 0o755);
  chmodSync(join(dir, '..'), 0o755);
  const stranger = OTHER_UID + 1;
  const data = new RegExp(
    `uid ${stranger} may not use ${dir}/data.*, which belongs to uid ${OTHER_UID}: permission denied`,
  );
  for (const command of ['status', 'doctor']) {
    const { code, stdout, stderr } = await as(stranger, command);
    t.equal(code, 1, command);
    t.match(`${stdout}${stderr}`, data, command);
    t.match(`${stdout}${stderr}`, `Run this as uid ${OTHER_UID}, or as root.`);
    t.notMatch(`${stdout}${stderr}`, problems);
  }
  chmodSync(dir, 0o700);
  const { code, stderr } = await as(stranger, 'env', 'list');
  t.equal(code, 2);
  t.match(
    stderr,
    new RegExp(`may not use ${dir} \\(for ${dir}/config.json\\), which belongs to uid ${OTHER_UID}[^]*or as root`),
  );
});

t.test('root is told when the owner of the folder cannot use a path', { skip: noOtherUser }, async (t) => {
  const found = await scene();
  const place = join(tempFolder(t), 'all.ndjson');
  const { code, stderr } = await found.as(0, 'export', place);
  t.equal(code, 1);
  t.match(
    stderr,
    new RegExp(
      `uid ${OTHER_UID} may not use ${dirname(place)} \\(for ${place}[^]*As root, commands run as the owner of the folder[^]*chown -R ${OTHER_UID}:${OTHER_UID}`,
    ),
  );
});

/** The effective user of a process. */
function uidOf(pid: number): number {
  return Number(/^Uid:\s+\d+\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
