import type { Command } from 'commander';
import type { startPrimary as StartPrimary } from '../../app.ts';
import type { Primary, Ready } from '../../cluster/primary.ts';
import type { Config } from '../../config/schema.ts';
import { OTHER_NODE } from '../../net/core-check.ts';
import { requireCoreFile } from '../../net/listen.ts';
import { reasonOf } from '../doctor/check.ts';
import { addCommand } from '../command.ts';
import { Failure } from '../failure.ts';
import { configOf, hasStore, invocation } from '../shared/folder.ts';
import { callable, printResult, shellWord } from '../terminal/output.ts';
import { clearRunning, writeRunning } from '../shared/running.ts';
import type { Setup } from '../setup/setup.ts';
import { keysText, postingLine, userLine } from '../setup/welcome.ts';

const STDOUT = 1;
const STDERR = 2;

/** What there is to say about a server that has just become ready. */
interface Started extends Ready {
  readonly dir: string;
  readonly demo: boolean;
  /** What its folder was given, when this start has made it. */
  readonly setup: Setup | null;
}

/** Adds `start`. */
export function register(program: Command): void {
  addCommand(program, 'start', {
    summary: 'Start the server, in the foreground.',
    details:
      'Makes the folder first, as `collab init` does, when there is none. SIGTERM and SIGINT finish what runs and exit 0; ' +
      'SIGHUP replaces the workers one by one. Flags win over COLLAB_* variables, those over config.json. ' +
      'The log goes to standard output; with --json to standard error, so that standard output is the one document.',
    examples: ['collab start', 'collab start --dir /srv/collab --host 0.0.0.0 --workers 4', 'collab start --dir ./data --demo'],
  })
    .option('--host <address>', 'Address to listen on (default: 127.0.0.1).')
    .option('--port <n>', 'Port to listen on; 0 lets the system choose (default: 8787).')
    .option('--workers <n|auto>', 'Web worker processes; auto is one per processor (default: auto).')
    .option('--demo', 'Serve the demo page at /. Never on a public server.')
    .action(start);
}

async function start(options: { host?: string; port?: string; workers?: string; demo?: true }, command: Command): Promise<void> {
  const { dir, json } = invocation(command);
  const { host, port, workers, demo } = options;
  const config = await configOf(dir, { host, port, workers, demo: demo && 'true' });
  requireCore();
  const { startPrimary } = await import('../../app.ts');
  const setup = hasStore(config) ? null : await setUpFirst(dir, config);
  const { server, ready } = await serve(config, json, startPrimary).catch((error: unknown) => {
    // They are shown only once, and the folder that they are of stays.
    if (setup !== null) process.stderr.write(`${keysText(setup)}\n`);
    throw error;
  });
  if (ready !== null) {
    const started: Started = { ...ready, dir, demo: config.demo, setup };
    writeRunning(config.dataDir, { pid: process.pid, address: ready.url, workers: ready.webWorkers, startedAt: new Date().toISOString() });
    printResult(json, forScripts(started), () => welcome(started));
  }
  process.exitCode = await server.ended;
  clearRunning(config.dataDir);
}

/** Starts the server and waits until it serves; `ready` is null when it was told to stop before. */
async function serve(config: Config, json: boolean, startPrimary: typeof StartPrimary): Promise<{ server: Primary; ready: Ready | null }> {
  const server = await startPrimary(config, json ? STDERR : STDOUT);
  return { server, ready: await server.ready };
}

/** Throws where there is no HTTP core for this Node: before anything is made or forked. Workers test the core that they load. */
function requireCore(): void {
  try {
    requireCoreFile();
  } catch (error) {
    throw new Failure(`${reasonOf(error)}. ${OTHER_NODE}`);
  }
}

/** Loaded only when there is something to set up: a start must not wait for the store, which this process never opens else. */
async function setUpFirst(dir: string, config: Config): Promise<Setup | null> {
  const { setUp } = await import('../setup/setup.ts');
  return setUp(dir, config, config.demo);
}

function forScripts({ url, port, webWorkers, dir, setup }: Started): Record<string, unknown> {
  return { ready: true, address: url, port, workers: webWorkers, pid: process.pid, dir, ...setup };
}

function welcome(started: Started): string {
  const { url, webWorkers, dir, demo, setup } = started;
  return [
    '',
    `Collab is ready at ${url} with ${webWorkers === 1 ? 'one worker' : `${webWorkers} workers`}; its folder is ${dir}.`,
    ...(setup === null ? [] : ['', keysText(setup)]),
    ...(demo ? ['', `Open ${url}/ in a browser.`] : []),
    '',
    ...firstThread(started),
    'Ctrl-C stops it.',
    '',
  ].join('\n');
}

function firstThread({ url, demo, setup, dir }: Started): string[] {
  if (setup === null) {
    return ['The keys were shown when the folder was made. For another:', '', `  ${callable(`collab key create --env <slug> --kind secret --dir ${shellWord(dir)}`)}`, ''];
  }
  const author = demo ? [] : [`  ${userLine(url, setup.secretKey, 'ci-bot')}`, ''];
  return ['Post a first thread from another terminal:', '', ...author, `  ${postingLine(url, setup.secretKey, 'ci-bot')}`, ''];
}
