import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { serverCore } from './cores.ts';
import { processTree } from './processes.ts';
import { answers, until } from './wait.ts';

/** A running server, with all its processes on the server's core. */
export interface ServerProcess {
  readonly port: number;
  /** Milliseconds from the spawn to the first 200 of /readyz. */
  readonly readyMs: number;
  /** Milliseconds from the spawn to the line that reports the server as ready; null before that. */
  readyLineMs(): number | null;
  /** The server's current processes. */
  pids(): number[];
  /** Ends it with SIGTERM, and after a timeout with SIGKILL. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/**
 * Starts `node <args>` on the server's core. Resolves when /readyz answers 200; otherwise the error contains the
 * output.
 */
export function startServer(port: number, args: readonly string[], limitMs = 60_000): Promise<ServerProcess> {
  return startProgram(port, process.execPath, args, limitMs);
}

/** As `startServer`, for any program. */
export async function startProgram(
  port: number,
  program: string,
  args: readonly string[],
  limitMs = 60_000,
): Promise<ServerProcess> {
  const started = performance.now();
  const child = spawn('taskset', ['-c', String(serverCore), program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.once('exit', () => running.delete(child));

  let printed = '';
  let readyLineAt: number | null = null;
  const onOutput = (chunk: Buffer): void => {
    printed = (printed + chunk.toString()).slice(-8192);
    if (readyLineAt === null && /\bready\b/i.test(printed)) readyLineAt = performance.now();
  };
  child.stdout.on('data', onOutput);
  child.stderr.on('data', onOutput);

  const url = `http://127.0.0.1:${port}/readyz`;
  await until('start', limitMs, async () => {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}:\n${printed}`);
    return answers(url);
  });
  const readyMs = performance.now() - started;

  return {
    port,
    readyMs,
    readyLineMs: () => (readyLineAt === null ? null : readyLineAt - started),
    pids: () => processTree(child.pid!),
    stop: async () => {
      const tree = processTree(child.pid!);
      child.kill('SIGTERM');
      const timer = setTimeout(() => {
        for (const pid of tree) kill(pid);
      }, 15_000);
      await exited;
      clearTimeout(timer);
    },
  };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      );
    });
  });
}
