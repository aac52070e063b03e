import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { collab } from '../helpers/command.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const run = promisify(execFile);
const good = fileURLToPath(new URL('../fixtures/plugins/good.mjs', import.meta.url));
const skip = (shell: string): string | false =>
  spawnSync(shell, ['-c', 'exit']).error === undefined ? false : `no ${shell} here`;
const dir = tempFolder(t);
// The second cannot be loaded.
writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins: [{ use: good }, { use: './none.mjs' }] }));

/** The script for a shell, in a file. */
async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await collab(['completion', shell, '--dir', dir]);
  t.equal(code, 0);
  const file = join(dir, `collab.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

t.test('bash completes commands, subcommands, options and their values', { skip: skip('bash') }, async (t) => {
  const file = await scriptFor('bash');
  const complete = async (...words: string[]): Promise<string[]> => {
    const line = `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _collab; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run('bash', ['-c', line, file, ...words]);
    return stdout.split('\n').filter((word) => word !== '');
  };
  t.strictSame(await complete('collab', 'sta'), ['start', 'status']);
  t.strictSame(
    await complete('collab', '--dir', 'env', 'key', 'cr'),
    ['create'],
    'the value of an option is no command',
  );
  t.strictSame(await complete('collab', 'env', 'update', 'default', '--max-f'), ['--max-file-size-mb']);
  t.ok((await complete('collab', 'doctor', '')).includes('--json'));
  t.strictSame(await complete('collab', 'token', 'create', '--env', ''), [], 'nothing is known about values');
  t.strictSame(await complete('collab', 'key', 'create', '--kind', ''), ['secret', 'publishable', 'signing']);
  t.strictSame(await complete('collab', '--dir', 'x', 'key', 'create', '--env', 'default', '--scope', 'm'), [
    'moderate',
  ]);
  t.strictSame(await complete('collab', 'thread', 'list', '--resolved', 't'), ['true']);
  t.strictSame(
    await complete('collab', 'env', 'create', '--kind', ''),
    await complete('collab', 'env', 'create', ''),
    'a flag of another command',
  );
  t.strictSame(await complete('collab', 'completion', 'f'), ['fish']);
  t.strictSame(await complete('collab', 'web'), ['web-push', 'webhook'], 'shipped plugins');
  t.strictSame(await complete('collab', 'webhook', 'r'), ['rotate', 'remove', 'replay']);
  t.strictSame(await complete('collab', 'webhook', 'add', '--e'), ['--env', '--events']);
  t.strictSame(await complete('collab', 'webhook', 'add', '--url', ''), [], 'nothing is known about values');
  t.strictSame(await complete('collab', 'good', 'l'), ['list'], 'a plugin of the configuration');
  t.strictSame(await complete('collab', 'moderation-r'), [], 'a plugin without commands');
  writeFileSync(join(dir, 'backup-of-may'), '');
  t.strictSame(await complete('collab', '--dir', join(dir, 'backup')), [join(dir, 'backup-of-may')]);
  writeFileSync(join(dir, 'last backup'), '');
  t.strictSame(
    await complete('collab', '--dir', join(dir, 'last')),
    [join(dir, 'last backup')],
    'a name with a space is one word',
  );
});

t.test('zsh completes commands with their descriptions, and values of options', { skip: skip('zsh') }, async (t) => {
  const file = await scriptFor('zsh');
  const line =
    'compdef() { }; _describe() { print -rl -- "${found[@]}" }; source "$0"; words=("$@"); CURRENT=$#; _collab';
  const complete = async (...words: string[]): Promise<string> =>
    (await run('zsh', ['-f', '-c', line, file, ...words])).stdout;
  t.match(await complete('collab', 'env', ''), /^create:Create an environment\nlist:List all environments\n/);
  t.match(await complete('collab', 'webhook', ''), /^add:Send the events of an environment to a URL\n/);
  t.equal(await complete('collab', 'key', 'create', '--kind', ''), 'secret\npublishable\nsigning\n');
  t.equal(await complete('collab', 'token', 'create', '--user', 'ann', '--role', ''), 'viewer\nmember\nmoderator\n');
  t.match(await complete('collab', 'completion', ''), /^bash:The shell that runs the script\nzsh:/);
});

t.test('fish completes commands, options and their values', { skip: skip('fish') }, async (t) => {
  const file = await scriptFor('fish');
  const complete = async (line: string): Promise<string> =>
    (await run('fish', ['-N', '-c', `source ${file}; complete -C '${line}'`])).stdout;
  t.match(await complete('collab env up'), /^update\tChange the name/);
  t.match(await complete('collab webhook rot'), /^rotate\tReplace the secret of an endpoint/);
  t.match(await complete('collab webhook add --ur'), /^--url\t/m);
  t.match(await complete('collab key create --ki'), /^--kind\t/m);
  t.notMatch(await complete('collab key create --ma'), /max-file-size/);
  t.strictSame((await complete('collab key create --kind ')).match(/^\w+/gm), ['publishable', 'secret', 'signing']);
  t.strictSame((await complete('collab moderation list --state=de')).match(/^\S+/gm), ['--state=decided']);
  t.match(await complete('collab completion z'), /^zsh\t/m);
});

t.test('another shell is refused', async (t) => {
  t.match(await collab(['completion', 'tcsh']), {
    code: 2,
    stdout: '',
    stderr: /<shell> must be one of bash, zsh, fish, not "tcsh"/,
  });
});
