import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transform } from 'esbuild';
import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { groups, options } from '../../src/config/option.ts';
import { isShipped } from '../../src/plugins/loading/locate.ts';
import { collab } from '../helpers/cli.ts';
import { blocksOf, type CodeBlock, documents } from '../helpers/code-blocks.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const blocks = documents.flatMap((path) => blocksOf(path));
const json = blocks.filter(({ language }) => language === 'json');

/** An entry of the option `plugins`. */
interface Entry {
  readonly use: string;
}

t.test('every JSON block is JSON, as a whole or line by line', (t) => {
  t.ok(json.length > 15);
  t.strictSame(
    json.filter((block) => parsed(block) === null).map(({ at }) => at),
    [],
  );
  t.end();
});

t.test('every block of configuration is valid', (t) => {
  const configs = json.filter((block) => isConfig(parsed(block)));
  t.ok(configs.length >= 4);
  for (const { at, text } of configs) {
    const dir = tempFolder(t);
    writeFileSync(join(dir, 'config.json'), text);
    t.doesNotThrow(() => loadConfig({ dir, env: {}, flags: {} }), at);
  }
  t.end();
});

t.test('every configuration of a plugin that ships is one that the plugin accepts', async (t) => {
  const entries = json.flatMap((block) =>
    entriesOf(parsed(block))
      .filter(({ use }) => isShipped(use))
      .map((entry) => ({ at: block.at, entry })),
  );
  t.ok(entries.length >= 6);
  for (const { at, entry } of entries) {
    const dir = tempFolder(t);
    // What documents leave out of addresses and secrets.
    const text = JSON.stringify({ plugins: [entry] })
      .replaceAll('whsec_…', `whsec_${Buffer.alloc(32).toString('base64')}`)
      .replaceAll('…', 'x');
    writeFileSync(join(dir, 'config.json'), text);
    const { code, stderr } = await collab(['plugin', 'check', '--dir', dir]);
    t.equal(code, 0, `${at}: ${stderr}`);
  }
});

t.test('every JavaScript block is valid syntax', async (t) => {
  const scripts = blocks.filter(({ language }) => /^jsx?\b/.test(language));
  t.ok(scripts.length > 10);
  for (const { at, text } of scripts) {
    const problem = await transform(text, { loader: 'jsx', format: 'esm', logLevel: 'silent' }).then(
      () => null,
      (error: Error) => error.message,
    );
    t.equal(problem, null, at);
  }
});

/** The values of a block; null if it is not JSON. */
function parsed({ text }: CodeBlock): unknown[] | null {
  for (const parts of [[text], text.trim().split('\n')]) {
    try {
      return parts.map((part) => JSON.parse(part) as unknown);
    } catch {
      // The next way to read it.
    }
  }
  return null;
}

/** Whether the values are one object of options. */
function isConfig(values: unknown[] | null): boolean {
  const [value] = values ?? [];
  if (values?.length !== 1 || typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const names = Object.keys(value);
  return names.length > 0 && names.every((name) => options.has(name) || groups.has(name));
}

function entriesOf(values: unknown[] | null): Entry[] {
  return (values ?? []).flatMap((value) => {
    if (typeof value !== 'object' || value === null) return [];
    if ('use' in value) return [value as Entry];
    return 'plugins' in value ? (value.plugins as Entry[]) : [];
  });
}
