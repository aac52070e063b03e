import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { SEMI_SPACE_MB } from '../../src/cluster/fork.ts';
import { collab, collabCommand, type InitOutput } from './cli.ts';

/**
 * Fills a folder, which may have a `config.json` but no data, as `collab init` does: with a copy of what `init` made
 * for all tests of this run, and the code caches that a server has left. So each such folder has the same keys. Tests
 * of `init`, of a first start and of several servers with keys of their own call `init` instead.
 *
 * @param data the folder that `dataDir` in that `config.json` names
 */
export async function newFolder(dir: string, data = join(dir, 'data')): Promise<InitOutput> {
  const template = await templateOfRun();
  if (template === undefined) return init(dir);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (existsSync(data)) throw new Error(`${data} exists`);
  cpSync(join(template, 'data'), data, { recursive: true });
  if (!existsSync(join(dir, 'config.json')))
    for (const name of ['config.json', 'config.schema.json']) cpSync(join(template, name), join(dir, name));
  return { ...(JSON.parse(readFileSync(join(template, 'keys.json'), 'utf8')) as InitOutput), dir };
}

/** Adds the code caches that a server has left to the folder of a node with engines, whose options of V8 differ. */
export async function addCodeCaches(dir: string): Promise<void> {
  const build = process.env['TEST_BUILD'];
  if (build === undefined) return;
  const caches = join(build, 'code-caches-of-nodes');
  if (!existsSync(caches)) {
    const draft = mkdtempSync(`${caches}-`);
    await newFolder(draft);
    await startAndStop(draft, [`--max-semi-space-size=${SEMI_SPACE_MB.remote}`]);
    place(join(draft, 'data/cache'), caches);
    rmSync(draft, { recursive: true });
  }
  cpSync(caches, join(dir, 'data/cache'), { recursive: true });
}

/** Fills a folder by `collab init`. */
export async function init(dir: string): Promise<InitOutput> {
  const { code, stdout, stderr } = await collab(['init', '--dir', dir, '--json']);
  if (code !== 0) throw new Error(`collab init failed (${code}): ${stderr}`);
  return JSON.parse(stdout) as InitOutput;
}

/** The folder that others copy; undefined outside of a run of the tests. */
async function templateOfRun(): Promise<string | undefined> {
  const build = process.env['TEST_BUILD'];
  if (build === undefined) return undefined;
  const template = join(build, 'new-folder');
  if (!existsSync(template)) await makeTemplate(template);
  return template;
}

/** Makes the folder that others copy. It appears complete; another process may make it meanwhile. */
async function makeTemplate(template: string): Promise<void> {
  const draft = mkdtempSync(`${template}-`);
  writeFileSync(join(draft, 'keys.json'), JSON.stringify(await init(draft)));
  const started = mkdtempSync(`${template}-`);
  cpSync(draft, started, { recursive: true });
  await startAndStop(started);
  cpSync(join(started, 'data/cache'), join(draft, 'data/cache'), { recursive: true });
  rmSync(started, { recursive: true });
  place(draft, template);
}

/** Makes a folder appear complete at its place, unless another process has put one there meanwhile. */
function place(draft: string, path: string): void {
  try {
    renameSync(draft, path);
  } catch {
    rmSync(draft, { recursive: true });
  }
}

/** Runs a server until it is ready. Its workers leave their code caches as they end. */
async function startAndStop(dir: string, v8Options: readonly string[] = []): Promise<void> {
  const [node = '', ...program] = collabCommand;
  const server = spawn(
    node,
    [...v8Options, ...program, 'start', '--dir', dir, '--port', '0', '--workers', '1', '--json'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  createInterface({ input: server.stdout }).on('line', (line) => {
    if (line.startsWith('{"ready":true')) server.kill();
  });
  await new Promise((resolve) => server.once('exit', resolve));
}
