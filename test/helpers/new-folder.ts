import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { collab, collabCommand, type InitOutput } from './cli.ts';

/**
 * Fills a folder, which may have a `config.json` but no data, as `collab init` does: with a copy of what `init` made
 * for all tests of this run, and the code caches that a server has left. So each such folder has the same keys. Tests
 * of `init`, of a first start and of several servers with keys of their own call `init` instead.
 */
export async function newFolder(dir: string): Promise<InitOutput> {
  const build = process.env['TEST_BUILD'];
  if (build === undefined) return init(dir);
  const template = join(build, 'new-folder');
  if (!existsSync(template)) await makeTemplate(template);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (existsSync(join(dir, 'data'))) throw new Error(`${dir} has data`);
  const names = existsSync(join(dir, 'config.json')) ? ['data'] : ['data', 'config.json', 'config.schema.json'];
  for (const name of names) cpSync(join(template, name), join(dir, name), { recursive: true });
  return { ...(JSON.parse(readFileSync(join(template, 'keys.json'), 'utf8')) as InitOutput), dir };
}

/** Fills a folder by `collab init`. */
export async function init(dir: string): Promise<InitOutput> {
  const { code, stdout, stderr } = await collab(['init', '--dir', dir, '--json']);
  if (code !== 0) throw new Error(`collab init failed (${code}): ${stderr}`);
  return JSON.parse(stdout) as InitOutput;
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
  try {
    renameSync(draft, template);
  } catch {
    rmSync(draft, { recursive: true });
  }
}

/** Runs a server until it is ready. Its workers leave their code caches as they end. */
async function startAndStop(dir: string): Promise<void> {
  const [node = '', ...program] = collabCommand;
  const server = spawn(node, [...program, 'start', '--dir', dir, '--port', '0', '--workers', '1', '--json'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  createInterface({ input: server.stdout }).on('line', (line) => {
    if (line.startsWith('{"ready":true')) server.kill();
  });
  await new Promise((resolve) => server.once('exit', resolve));
}
