import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadCore } from './cores.ts';
import { newFolder } from './folders.ts';
import { busyMs } from './processes.ts';
import type { Target } from './target.ts';

const loads = fileURLToPath(new URL('../loads/', import.meta.url));
const run = promisify(execFile);

/** The result of one run of wrk. */
export interface WrkRun {
  /** Answers. */
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Received bytes per response, including heads. */
  readonly bytesPerAnswer: number;
  /**
   * Share of the server's core that its processes used, in percent. If it is far below 100, the load was the
   * bottleneck.
   */
  readonly serverBusy: number;
}

interface Summary {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly bytes: number;
  readonly badStatus: number;
  readonly socketErrors: number;
}

/** @throws {Error} if a tool that the harness needs is not installed, naming its package */
export function requireTools(): void {
  for (const [tool, source] of [
    ['wrk', 'wrk'],
    ['taskset', 'util-linux'],
  ] as const) {
    if (spawnSync(tool, ['--version']).error !== undefined)
      throw new Error(`${tool} is not installed: apt-get install ${source}`);
  }
}

/** Writes the thread ids to a file for the Lua scripts. */
export function threadsFile(ids: readonly string[]): string {
  const file = join(newFolder('threads'), 'ids');
  writeFileSync(file, `${ids.join('\n')}\n`);
  return file;
}

/** How a script is run; the comment at its start describes its arguments. */
export interface ScriptOptions {
  readonly connections: number;
  readonly seconds: number;
  readonly args: readonly string[];
}

/** Runs a script over threads, as `runScript`. */
export function runWrk(
  script: 'create' | 'list',
  target: Target,
  threads: string,
  seconds: number,
  connections = 64,
): Promise<WrkRun> {
  return runScript(script, target, { connections, seconds, args: [threads, target.authorization] });
}

/** Runs wrk on the load's core. Throws if any request was refused or failed, because that invalidates the run. */
export async function runScript(
  script: 'create' | 'list' | 'upload' | 'serve',
  target: Target,
  { connections, seconds, args: scriptArgs }: ScriptOptions,
): Promise<WrkRun> {
  const pids = target.server.pids();
  const busyBefore = busyMs(pids);
  const args = [
    '-t1',
    `-c${connections}`,
    '--timeout',
    '10s',
    `-d${seconds}s`,
    '-s',
    `${loads}${script}.lua`,
    `http://127.0.0.1:${target.server.port}`,
  ];
  const { stdout } = await run('taskset', ['-c', String(loadCore), 'wrk', ...args, '--', ...scriptArgs], {
    env: { ...process.env, LUA_PATH: `${loads}?.lua` },
  });
  const busy = busyMs(pids) - busyBefore;
  const summary = JSON.parse(stdout.trim().split('\n').at(-1)!) as Summary;
  if (summary.badStatus > 0 || summary.socketErrors > 0) {
    throw new Error(
      `${target.name}: ${summary.badStatus} bad answers and ${summary.socketErrors} socket errors in ${summary.requests} requests`,
    );
  }
  return {
    requests: summary.requests,
    perSecond: summary.requests / summary.seconds,
    p50Ms: summary.p50Ms,
    p99Ms: summary.p99Ms,
    bytesPerAnswer: summary.bytes / summary.requests,
    serverBusy: busy / summary.seconds / 10,
  };
}
