import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';
import { writeNamed } from '../../../lib/files/named-writes.ts';
import { isShipped } from '../../../plugins/loading/locate.ts';
import { PLUGIN_NAME } from '../../../plugins/loading/plugin-name.ts';
import { Failure, usageFailure } from '../../failure.ts';

/**
 * Writes the skeleton of a plugin to a new folder in `parent` and returns its path.
 *
 * @throws {Failure} for a bad name or one of a shipped plugin, and if the folder exists
 */
export async function createPlugin(name: string, parent: string): Promise<string> {
  if (!PLUGIN_NAME.test(name))
    throw usageFailure(
      `The name of a plugin must match ${PLUGIN_NAME.source}: 2 to 40 lower-case letters, digits and ` +
        `hyphens, the first a letter. ${JSON.stringify(name)} does not.`,
    );
  if (isShipped(name))
    throw usageFailure(`The name ${name} is that of a plugin that ships with Collab.`, 'Choose another name.');
  const folder = resolve(parent, name);
  if (existsSync(folder))
    throw new Failure(`${folder} exists already.`, ['Choose another name, or remove the folder.']);
  await mkdir(folder);
  for (const [file, text] of Object.entries(files(name))) await writeNamed(join(folder, file), text);
  return folder;
}

/** The folder of this installation: the plugin depends on it, because it needs the types and `definePlugin`. */
function installation(): string {
  return fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../../../' : '../../', import.meta.url)).replace(
    /\/$/,
    '',
  );
}

function files(name: string): Record<string, string> {
  // Of this installation too, so that the plugin installs without a network.
  const typebox = `file:${/^.*[/\\]node_modules[/\\]typebox(?=[/\\])/.exec(createRequire(join(installation(), 'package.json')).resolve('typebox'))?.[0] ?? ''}`;
  const manifest = {
    name: `collab-plugin-${name}`,
    version: '0.1.0',
    private: true,
    type: 'module',
    main: 'index.js',
    scripts: { test: 'node --test', types: 'tsc' },
    dependencies: { collab: `file:${installation()}`, typebox },
  };
  const compiler = {
    compilerOptions: {
      checkJs: true,
      strict: true,
      noEmit: true,
      target: 'ES2023',
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      skipLibCheck: true,
      types: [],
    },
    include: ['*.js'],
    exclude: ['*.test.js'],
  };
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    'tsconfig.json': `${JSON.stringify(compiler, null, 2)}\n`,
    'index.js': moduleText(name),
    'index.test.js': testText(name),
    'README.md': `# ${name}\n\nA plugin of Collab. \`npm i\`, then \`npm test\`; \`npx tsc\` checks the types (\`npm i -D typescript\`).\n\nAdd it to config.json: \`"plugins": [{ "use": "./${name}/index.js", "config": { "word": "spam" } }]\`, and check it with \`collab plugin check\`.\n`,
  };
}

function moduleText(name: string): string {
  return `import { definePlugin, reject } from 'collab/plugin';
import Type from 'typebox';

export default definePlugin({
  name: '${name}',
  version: '0.1.0',
  apiVersion: 1,
  config: Type.Object({
    word: Type.String({ minLength: 1, default: 'spam', description: 'Comments with this word are refused.' }),
  }),
  setup(host) {
    // Runs before a comment is stored: return nothing to accept it, a patch to change it, or reject(…).
    host.filter('comment.create', ({ comment }, { config }) => {
      if (comment.body.includes(config.word)) return reject(\`Please do not write \${config.word}\`);
    });

    // Runs after a comment was stored, at least once, outside of the request.
    host.action('comment.created', async (event, { environment }) => {
      const kv = host.kv(environment);
      const count = Number((await kv.get('count')) ?? 0) + 1;
      await kv.put('count', count);
      host.log.info({ eventId: event.eventId, count }, 'a comment was created');
    });
  },
});
`;
}

function testText(name: string): string {
  return `import assert from 'node:assert/strict';
import { test } from 'node:test';
import plugin from './index.js';

/** Runs the setup and returns the hooks by name. */
function hooksOf() {
  const hooks = {};
  const stored = new Map();
  const kv = { get: async (key) => stored.get(key), put: async (key, value) => void stored.set(key, value) };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  plugin.setup({ name: '${name}', log, kv: () => kv, filter: (name, run) => (hooks[name] = run), action: (type, run) => (hooks[type] = run) });
  return { hooks, stored };
}

test('a comment with the word is refused, and others are not', () => {
  const { hooks } = hooksOf();
  const context = { config: { word: 'spam' } };
  assert.equal(hooks['comment.create']({ comment: { body: 'buy spam' } }, context).outcome, 'reject');
  assert.equal(hooks['comment.create']({ comment: { body: 'hello' } }, context), undefined);
});

test('comments are counted', async () => {
  const { hooks, stored } = hooksOf();
  await hooks['comment.created']({ eventId: 'ev_1' }, { environment: { id: 'env_1', slug: 'default' } });
  assert.equal(stored.get('count'), 1);
});
`;
}
