import t, { type Test } from 'tap';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/load.ts';
import { checkPlugins } from '../../src/plugins/loading/check-plugin.ts';
import { loadPlugin } from '../../src/plugins/loading/load.ts';
import { collab } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));

interface Refused {
  readonly plugins: readonly object[];
  /** What is bad about the fixture of that name. */
  readonly bad?: string;
}

/** What `start` says of a configuration that it must refuse, after its check of plugins, and without its process. */
async function refusal(t: Test, { plugins, bad = '' }: Refused): Promise<string> {
  const dir = tempFolder(t);
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins }));
  process.env['BAD'] = bad;
  try {
    const config = loadConfig({ dir, env: {}, flags: {} });
    // What the module and the configuration of a plugin decide needs no thread, which takes half a second.
    if (bad === '') for (const entry of config.plugins) await loadPlugin(entry);
    // Without the plugin that is loaded by default, which would be checked beside it, in two more threads.
    const alone = bad !== '' && bad !== 'name of a shipped plugin';
    const checked = alone ? config.plugins.filter(({ use }) => use !== 'webhook') : config.plugins;
    await checkPlugins(checked, config.publicUrl);
    return 'nothing was refused';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    delete process.env['BAD'];
  }
}

/** Which of the rows are tried with the command itself: a module, in a process of its own, a setup, and an entry. */
const STARTED = ['a module that throws', 'a setup that throws', 'an unknown field of an entry'];

const rows: readonly [what: string, plugins: readonly object[], bad: string, message: RegExp][] = [
  ['a missing path', [{ use: './nowhere.mjs' }], '', /nowhere\.mjs: there is no such module/],
  [
    'a package that is not installed',
    [{ use: 'collab-plugin-nowhere' }],
    '',
    /plugin collab-plugin-nowhere: is neither a shipped plugin nor a package installed in/,
  ],
  [
    'a misspelt shipped plugin',
    [{ use: 'webhok' }],
    '',
    /plugin webhok: is neither a shipped plugin nor a package installed in .*; did you mean webhook\?/,
  ],
  [
    'a module that throws',
    [{ use: fixture('bad') }],
    'throws at load',
    /plugin .*bad\.mjs: its module failed to load: broken module/,
  ],
  ['a setup that throws', [{ use: fixture('bad') }], 'throws at setup', /plugin bad: its setup failed: broken setup/],
  [
    'an onError that does not exist',
    [{ use: fixture('bad') }],
    'wrong onError',
    /plugin bad: its setup failed: onError of the filter comment\.create must be open, closed or hold, not "close"/,
  ],
  [
    'a priority that is no number',
    [{ use: fixture('bad') }],
    'wrong priority',
    /plugin bad: its setup failed: priority of the filter comment\.create must be a whole number, not "200"/,
  ],
  [
    'a route with a credential that does not exist',
    [{ use: fixture('bad') }],
    'wrong credential',
    /plugin bad: its setup failed: credential of the route open must be user, secret or public, not "secrets"/,
  ],
  [
    'a route without a method',
    [{ use: fixture('bad') }],
    'no method',
    /plugin bad: its setup failed: method of the route open must be GET, POST or DELETE/,
  ],
  [
    'a queue without retryDelaysMs',
    [{ use: fixture('bad') }],
    'no retries',
    /plugin bad: its setup failed: retryDelaysMs of the queue work must be an array of at most 100 whole numbers/,
  ],
  [
    'two commands of one name',
    [{ use: fixture('bad') }],
    'two commands',
    /plugin bad: its setup failed: two commands are named add/,
  ],
  [
    'another version of the API',
    [{ use: fixture('bad') }],
    'wrong version',
    /apiVersion is 2, but this version of Collab takes 1/,
  ],
  ['no default export', [{ use: fixture('no-default') }], '', /no default export made by definePlugin/],
  [
    'an option out of bounds',
    [{ use: fixture('bad'), config: { size: 0 } }],
    '',
    /plugin bad: config\.size must be at least 1/,
  ],
  [
    'a secret that is none',
    [{ use: 'moderation-http', config: { url: 'http://127.0.0.1:1', secret: 'abc' } }],
    '',
    /plugin moderation-http: config\.secret must match \^whsec_\S+$/m,
  ],
  [
    'a rule of a type that does not exist',
    [{ use: 'moderation-rules', config: { rules: [{ type: 'wrods', words: ['a'] }] } }],
    '',
    /plugin moderation-rules: config\.rules\[0\]\.type must be one of words, patterns, links, repeats, rate, first-comment, not "wrods"/,
  ],
  [
    'a rule with a wrong option',
    [{ use: 'moderation-rules', config: { rules: [{ type: 'links' }, { type: 'words', words: 'a' }] } }],
    '',
    /plugin moderation-rules: config\.rules\[1\]\.words must be an array, not "a"/,
  ],
  [
    'a rule without what it needs',
    [{ use: 'moderation-rules', config: { rules: [{ type: 'rate' }] } }],
    '',
    /plugin moderation-rules: config\.rules\[0\]\.max is required/,
  ],
  [
    'a rule without a type',
    [{ use: 'moderation-rules', config: { rules: [{ words: ['a'] }] } }],
    '',
    /plugin moderation-rules: config\.rules\[0\]\.type is required: one of words/,
  ],
  [
    'an unknown option',
    [{ use: fixture('bad'), config: { siez: 1 } }],
    '',
    /plugin bad: config\.siez is not an option; did you mean size\?/,
  ],
  [
    'an option of an environment',
    [{ use: fixture('bad'), environments: { staging: { config: { size: 'x' } } } }],
    '',
    /plugin bad: environments\.staging\.config\.size must be an integer/,
  ],
  [
    'two plugins of one name',
    [{ use: fixture('bad') }, { use: fixture('bad') }],
    '',
    /another entry of plugins has a plugin that is named bad too/,
  ],
  [
    'the name of the plugin that is loaded by default',
    [{ use: fixture('bad') }],
    'name of a shipped plugin',
    /plugin .*bad\.mjs: its name webhook is that of a plugin that ships with Collab; give it another name/,
  ],
  [
    'the same, with that plugin turned off',
    [{ use: 'webhook', enabled: false }, { use: fixture('bad') }],
    'name of a shipped plugin',
    /bad\.mjs: its name webhook is that of a plugin that ships with Collab/,
  ],
  [
    'an unknown field of an entry',
    [{ use: fixture('bad'), priorty: 1 }],
    '',
    /plugins\[0\]\.priorty is not an option of a plugin/,
  ],
];

t.test('the server refuses to start with a bad plugin, and says which and why', async (t) => {
  for (const [what, plugins, bad, message] of rows) {
    const said = await refusal(t, { plugins, bad });
    t.match(said, message, what);
    t.notMatch(said, / at .*\.(?:js|ts):\d+/, `${what}: no stack`);
  }
});

t.test('a start that refuses a plugin exits with 2, one line and what to do', async (t) => {
  for (const [what, plugins, bad, message] of rows.filter(([what]) => STARTED.includes(what))) {
    const dir = tempFolder(t);
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins }));
    const inside = what !== STARTED[0];
    process.env['BAD'] = bad;
    const { code, stderr } = await collab(['start', '--dir', dir, '--port', '0'], { env: { BAD: bad }, inside });
    delete process.env['BAD'];
    t.equal(code, 2);
    t.match(stderr, message);
    t.match(stderr, /^collab: .*\n/);
    t.notMatch(stderr, / at .*\.(?:js|ts):\d+/, 'no stack');
    t.strictSame(readdirSync(dir), ['config.json'], 'nothing was created');
  }
});

t.test('a module that Node reads as CommonJS is refused with what to change', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'collab-plugins-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'package.json'), '{"type":"commonjs"}');
  for (const [name, source] of Object.entries({ imports: "import 'node:fs';", exports: 'export default {};' })) {
    const file = join(dir, `${name}.js`);
    writeFileSync(file, source);
    t.match(
      await refusal(t, { plugins: [{ use: file }] }),
      /its module failed to load: .*; plugins are ES modules: name the file \.mjs, or set "type": "module" in the package\.json of its folder/,
    );
  }
});

t.test(
  '`plugin check` refuses two plugins of one name, and the name of a shipped plugin, whose commands go on working',
  async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'collab-plugins-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const bad = fixture('bad');
    const configure = (...plugins: readonly object[]): void =>
      writeFileSync(join(dir, 'config.json'), JSON.stringify({ plugins }));
    configure({ use: bad }, { use: bad, priority: 1 });
    t.match(await collab(['plugin', 'check', '--dir', dir], { inside: true }), {
      code: 2,
      stdout:
        /bad 1\.0\.0: ok[^]*bad\.mjs: another entry of plugins has a plugin that is named bad too; remove one of the two/,
      stderr: /1 of 3 plugins cannot be loaded/,
    });
    await newFolder(dir);

    configure({ use: bad });
    const env = { BAD: 'name of a shipped plugin' };
    // Threads get it from the process, not from the command.
    Object.assign(process.env, env);
    t.teardown(() => delete process.env['BAD']);
    for (const args of [
      ['plugin', 'check', '--dir', dir],
      ['plugin', 'check', bad, '--dir', dir],
    ]) {
      t.match(await collab(args, { env, inside: true }), {
        code: 2,
        stdout: /bad\.mjs: its name webhook is that of a plugin that ships with Collab/,
        stderr: /cannot be loaded/,
      });
    }
    t.match(await collab(['webhook', 'list', '--env', 'default', '--dir', dir], { env }), {
      code: 0,
      stdout: /Environment default has no webhook endpoints/,
    });
    t.match(await collab(['plugin', 'new', 'webhook'], { cwd: dir, inside: true }), {
      code: 2,
      stderr: /The name webhook is that of a plugin that ships with Collab/,
    });
  },
);
