import type { Command } from 'commander';
import { listEnvironments } from '../../domain/environments/environments.ts';
import type { Environment } from '../../model/environment.ts';
import type { OpenSnapshot } from '../../ports/store.ts';
import { addCommand } from '../command.ts';
import { type Counts, countEnvironment } from './counts.ts';
import { invocation, withStore } from '../shared/folder.ts';
import { describeSnapshot, findHeldSnapshots } from '../doctor/held-snapshots.ts';
import { facts, next, printResult, shellWord, table } from '../terminal/output.ts';
import { readinessOf } from '../shared/readiness.ts';
import { findRunning } from '../shared/running.ts';

/** What `status --json` prints. */
interface Status {
  readonly dir: string;
  readonly running: boolean;
  readonly pid: number | null;
  readonly address: string | null;
  readonly workers: number | null;
  readonly startedAt: string | null;
  readonly ready: boolean;
  /** Processes that have held a snapshot of the store for a second and longer. */
  readonly heldSnapshots: readonly Pick<OpenSnapshot, 'table' | 'pid' | 'command' | 'stopped'>[];
  readonly environments: readonly (Pick<Environment, 'id' | 'slug' | 'name' | 'disabled'> & Counts)[];
}

/** Adds `status`. */
export function register(program: Command): void {
  addCommand(program, 'status', {
    summary: 'Say whether the server runs, where, and what it holds.',
    examples: ['collab status', 'collab status --json | jq .ready'],
  }).action(status);
}

async function status(_options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const found = await withStore(at, async (ctx, { dataDir }): Promise<Status> => {
    const server = findRunning(dataDir);
    const reached = server?.reached ?? null;
    const environments = [];
    for (const environment of await listEnvironments(ctx)) {
      const { id, slug, name, disabled } = environment;
      environments.push({ id, slug, name, disabled, ...(await countEnvironment(ctx, environment)) });
    }
    return {
      dir: at.dir,
      running: server !== null,
      pid: server?.pid ?? null,
      address: reached?.address ?? null,
      workers: reached?.workers ?? null,
      startedAt: reached?.startedAt ?? null,
      ready: reached !== null && (await readinessOf(reached)).ready,
      heldSnapshots: (await findHeldSnapshots(ctx.store)).map(({ table, pid, command, stopped }) => ({ table, pid, command, stopped })),
      environments,
    };
  });
  printResult(at.json, found, () => describe(found));
}

function describe(status: Status): string {
  const { environments } = status;
  const held = table(
    ['environment', 'name', 'rooms', 'threads', 'users', 'last event'],
    environments.map(({ slug, name, disabled, rooms, threads, users, seq }) => [
      disabled ? `${slug} (disabled)` : slug,
      name,
      String(rooms),
      String(threads),
      String(users),
      `#${seq}`,
    ]),
  );
  const warnings = status.heldSnapshots.map((snapshot) => `\nWarning: ${describeSnapshot(snapshot)}; collab doctor says more.`);
  return [serverText(status), ...warnings, '', environments.length === 0 ? 'There is no environment.' : held, nextText(status)].join('\n');
}

function serverText({ running, ready, address, workers, pid, startedAt, dir }: Status): string {
  if (!running) return facts([['server', 'stopped'], ['folder', dir]]);
  if (address === null) return facts([['server', 'starting'], ['process', String(pid)], ['folder', dir]]);
  return facts([
    ['server', ready ? 'running and ready' : 'running, but not ready'],
    ['address', address],
    ['workers', String(workers)],
    ['process', String(pid)],
    ['since', startedAt ?? ''],
    ['folder', dir],
  ]);
}

function nextText({ running, ready, dir }: Status): string {
  if (!running) return next(`collab start --dir ${shellWord(dir)}`);
  return ready ? '' : next(`collab doctor --dir ${shellWord(dir)}`);
}
