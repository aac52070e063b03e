import type { Command } from 'commander';
import { firstLine } from '../../../lib/thrown.ts';
import type { startPrimary as StartPrimary } from '../../../app.ts';
import type { Primary, Ready } from '../../../cluster/primary.ts';
import { coreLine } from '../../../cluster/core-line.ts';
import { reserveSpace } from '../../../cluster/disk-reserve.ts';
import { findFreePort, metricsOptions } from '../../../cluster/free-port.ts';
import { hasStoreInFolder } from '../../../config/engines.ts';
import type { Config } from '../../../config/schema.ts';
import { OTHER_CORE, requireNativeCore } from '../../../net/uws/native-core.ts';
import { addCommand } from '../../command.ts';
import { untestedNodeMessage } from '../../node-version.ts';
import { Failure, usageFailure } from '../../failure.ts';
import { hasStore } from '../../shared/folder.ts';
import { loadFolderConfig } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { toInvokedCommand, printResult } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { publishServer, removeServerFile } from '../../shared/running-server.ts';
import { FIRST_ENVIRONMENT } from '../../setup/first-environment.ts';
import type { Setup } from '../../setup/setup.ts';
import { keysText, curlPostThread, curlPutUser } from '../../setup/first-steps.ts';

const STDOUT = 1;
const STDERR = 2;

/** The output when the server is ready. */
interface Started extends Ready {
  readonly dir: string;
  readonly demo: boolean;
  /** The first environment, if this start has created the folder. */
  readonly setup: Setup | null;
}

/** Adds `start`. */
export function register(program: Command): void {
  addCommand(program, 'start', {
    summary: 'Start the server, in the foreground.',
    details:
      'If there is no folder, creates it first, as `collab init` does. SIGTERM and SIGINT finish the requests in progress and exit 0; ' +
      'SIGHUP replaces the web workers one by one, without reading config.json again. Flags override ' +
      'COLLAB_* variables, which override config.json. ' +
      'The log is written to standard output, or with --json to standard error, so that standard output contains only the JSON document.',
    examples: [
      'collab start',
      'collab start --dir /srv/collab --host 0.0.0.0 --workers 4',
      'collab start --dir ./data --demo',
    ],
  })
    .option('--host <address>', 'Address to listen on (default: 127.0.0.1).')
    .option('--port <n>', 'Port to listen on; 0 lets the system choose one (default: 8787).')
    .option('--workers <n|auto>', 'Number of web worker processes; auto starts one per processor (default: auto).')
    .option(
      '--demo',
      'Serve the demo page at /. Every visitor can write: never use it on a public server. A folder that ' +
        'this start creates begins with one thread.',
    )
    .action(start);
}

async function start(
  options: { host?: string; port?: string; workers?: string; demo?: true },
  command: Command,
): Promise<void> {
  const { dir, json } = invocationOf(command);
  const { host, port, workers, demo } = options;
  const given = await loadFolderConfig(dir, { host, port, workers, demo: demo && 'true' });
  const untested = untestedNodeMessage();
  if (untested !== null) process.stderr.write(`${untested}\n`);
  requireCore(given);
  const config = await checkedPlugins(given);
  const { startPrimary } = await import('../../../app.ts');
  const setup = hasStoreInFolder(config) && hasStore(config) ? null : await createFirstFolder(dir, config);
  // The keys are shown only once, and the folder stays even if the start fails or is interrupted.
  const showKeys = (): void => void (setup !== null && process.stderr.write(`${keysText(setup)}\n`));
  const { server, ready } = await serve(config, json, startPrimary).catch((error: unknown) => {
    showKeys();
    throw error;
  });
  if (ready === null) showKeys();
  else {
    const started: Started = { ...ready, dir, demo: config.demo, setup };
    await publishServer(config.dataDir, {
      pid: process.pid,
      address: ready.url,
      workers: ready.webWorkers,
      core: ready.core,
      startedAt: new Date().toISOString(),
    });
    printResult(json, jsonOf(started), () => welcome(started));
  }
  process.exitCode = await server.ended;
  removeServerFile(config.dataDir);
  reserveSpace(config.dataDir);
}

/** Starts the server and waits until it is ready; `ready` is null if it was stopped before that. */
async function serve(
  config: Config,
  json: boolean,
  startPrimary: typeof StartPrimary,
): Promise<{ server: Primary; ready: Ready | null }> {
  const server = await startPrimary(config, json ? STDERR : STDOUT);
  return { server, ready: await server.ready };
}

/**
 * Throws if the native core is demanded and there is none for this Node, before anything is created or forked. Workers
 * check the core that they load.
 */
function requireCore({ core }: Config): void {
  if (core !== 'uws') return;
  try {
    requireNativeCore();
  } catch (error) {
    throw new Failure(`${firstLine(error)}. ${OTHER_CORE}`);
  }
}

/**
 * Loads the plugins of the configuration in threads, before anything is created or forked: one that never ends would
 * block a worker. Throws if one that is not optional cannot be used. Returns the configuration for the workers, in
 * which those that are optional and failed are marked.
 */
async function checkedPlugins(config: Config): Promise<Config> {
  const { plugins, publicUrl } = config;
  if (plugins.length === 0) return config;
  const { checkPlugins } = await import('../../../plugins/loading/check-plugin.ts');
  try {
    return { ...config, plugins: await checkPlugins(plugins, publicUrl) };
  } catch (error) {
    throw usageFailure(
      firstLine(error),
      'Correct the option plugins, or set "optional": true in its entry to start without it. `collab plugin check` shows all problems.',
    );
  }
}

/**
 * Creates the folder, unless the server could not listen: it would be left without a server. Imported only here,
 * because otherwise this process never opens a store and need not load its modules.
 */
async function createFirstFolder(dir: string, config: Config): Promise<Setup | null> {
  const { host, port, metrics } = config;
  await findFreePort(host, port, 0);
  if (metrics.port !== 0) await findFreePort(metrics.host, metrics.port, 0, metricsOptions);
  const { setUp } = await import('../../setup/setup.ts');
  return setUp(dir, config);
}

function jsonOf({ url, port, webWorkers, core, dir, setup }: Started): Record<string, unknown> {
  return { ready: true, address: url, port, workers: webWorkers, core, pid: process.pid, dir, ...setup };
}

function welcome(started: Started): string {
  const { url, webWorkers, coreReason, dir, demo, setup } = started;
  return [
    '',
    `Collab is ready at ${url} with ${webWorkers === 1 ? 'one worker' : `${webWorkers} workers`}. Its folder is ${dir}.`,
    ...(coreReason === '' ? [] : [`${coreLine(coreReason)}.`]),
    ...(setup === null ? [] : ['', keysText(setup)]),
    ...(demo ? ['', `Open ${url}/ in a browser.`] : []),
    '',
    ...firstThread(started),
    'Press Ctrl-C to stop it.',
    '',
  ].join('\n');
}

function firstThread({ url, demo, setup, dir }: Started): string[] {
  if (setup === null) {
    const another = toInvokedCommand(
      `collab key create --env ${FIRST_ENVIRONMENT} --kind secret --dir ${shellWord(dir)}`,
    );
    return [
      `The keys were shown when the folder was created. To create another one in the environment ${FIRST_ENVIRONMENT}:`,
      '',
      `  ${another}`,
      '',
    ];
  }
  const author = demo ? [] : [`  ${curlPutUser(url, setup.secretKey, 'ci-bot')}`, ''];
  return [
    `Post a ${demo ? '' : 'first '}thread from another terminal:`,
    '',
    ...author,
    `  ${curlPostThread(url, setup.secretKey, 'ci-bot')}`,
    '',
  ];
}
