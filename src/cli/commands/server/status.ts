import type { Command } from 'commander';
import { listNodes, type Node } from '../../../domain/nodes.ts';
import { listEnvironments } from '../../../domain/environments/environments.ts';
import { hasFilesInFolder, hasStoreInFolder } from '../../../config/engines.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import type { OpenSnapshot } from '../../../ports/store-operations.ts';
import { addCommand } from '../../command.ts';
import { type Counts, countEnvironment } from '../environments/environment-counts.ts';
import { loadFolderConfig, useStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { describeSnapshot, findLongSnapshots } from '../../doctor/long-snapshots.ts';
import { keyValues, nextSteps, withDirOption, printResult, table } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';
import { bytesText } from '../../terminal/progress.ts';
import { diskUse } from '../../shared/disk-use.ts';
import { filesFolder, hasStore, noFolderFailure, storeFolder } from '../../shared/folder.ts';
import { readinessOf } from '../../shared/readiness.ts';
import { findRunningServer } from '../../shared/running-server.ts';
import { requireFreeStore } from '../../shared/store-trial.ts';

/** The exit code of `status` for a server that is stopped, as of the init scripts of the Linux Standard Base. */
const STOPPED = 3;

/** The output of `status --json`. */
interface Status {
  readonly dir: string;
  readonly running: boolean;
  readonly pid: number | null;
  readonly address: string | null;
  readonly workers: number | null;
  /** File of the native HTTP core, or `node`. */
  readonly core: string | null;
  readonly startedAt: string | null;
  readonly ready: boolean;
  /** How many plugins of the configuration the server runs without. */
  readonly missingPlugins: number;
  /** Whether its background worker cannot start. */
  readonly backgroundFailing: boolean;
  /** Disk usage of what the folder has of the data, in bytes. */
  readonly disk: { readonly storeBytes: number; readonly filesBytes: number };
  /** The servers that share the store; absent if only one can use it. */
  readonly nodes?: readonly Node[];
  /** Processes that have kept a snapshot of the store open for a second or longer. */
  readonly heldSnapshots: readonly Pick<OpenSnapshot, 'table' | 'pid' | 'command' | 'stopped'>[];
  readonly environments: readonly (Pick<Environment, 'id' | 'slug' | 'name' | 'disabled'> & Counts)[];
}

/** Adds `status`. */
export function register(program: Command): void {
  addCommand(program, 'status', {
    summary: 'Show whether the server is running, its address, its contents and disk usage.',
    details: 'Exit code 3 if the server is stopped.',
    examples: ['collab status', 'collab status --json | jq .ready'],
  }).action(status);
}

async function status(_options: object, command: Command): Promise<void> {
  const at = invocationOf(command);
  const config = await loadFolderConfig(at.dir);
  if (!hasStore(config)) throw noFolderFailure(at.dir);
  const isShared = !hasStoreInFolder(config);
  if (!isShared) await requireFreeStore(at.dir, config);
  const found = await useStore(config, async (ctx): Promise<Status> => {
    const server = findRunningServer(config.dataDir);
    const endpoint = server?.endpoint ?? null;
    const readiness = endpoint === null ? null : await readinessOf(endpoint);
    const environments = [];
    for (const environment of await listEnvironments(ctx)) {
      const { id, slug, name, disabled } = environment;
      environments.push({ id, slug, name, disabled, ...(await countEnvironment(ctx, environment)) });
    }
    return {
      dir: at.dir,
      running: server !== null,
      pid: server?.pid ?? null,
      address: endpoint?.address ?? null,
      workers: endpoint?.workers ?? null,
      core: endpoint?.core ?? null,
      startedAt: endpoint?.startedAt ?? null,
      ready: readiness?.ready ?? false,
      missingPlugins: readiness?.missingPlugins ?? 0,
      backgroundFailing: readiness?.backgroundFailing ?? false,
      disk: {
        storeBytes: isShared ? 0 : await diskUse(storeFolder(config)),
        filesBytes: hasFilesInFolder(config) ? await diskUse(filesFolder(config)) : 0,
      },
      ...(isShared ? { nodes: await listNodes(ctx) } : {}),
      heldSnapshots: (await findLongSnapshots(ctx.operations)).map(({ table, pid, command, stopped }) => ({
        table,
        pid,
        command,
        stopped,
      })),
      environments,
    };
  });
  printResult(at.json, found, () => describe(found));
  if (!found.running) process.exitCode = STOPPED;
}

function describe(status: Status): string {
  const { environments } = status;
  const contents = table(
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
  const problems = status.heldSnapshots.map(describeSnapshot);
  if (status.missingPlugins > 0)
    problems.push(`the server runs without ${status.missingPlugins} of the plugins of the configuration`);
  if (status.backgroundFailing)
    problems.push('the background worker of the server cannot start, so notifications and webhooks wait');
  const warnings = problems.map(
    (problem) => `\nWarning: ${problem}. ${withDirOption('Run `collab doctor` for details.')}`,
  );
  return [
    keyValues([...serverPairs(status), ...diskPairs(status)]),
    ...nodesTable(status),
    ...warnings,
    '',
    environments.length === 0 ? 'There are no environments.' : contents,
    nextText(status),
  ].join('\n');
}

function serverPairs({
  running,
  ready,
  address,
  workers,
  core,
  pid,
  startedAt,
  dir,
}: Status): [name: string, value: string][] {
  if (!running)
    return [
      ['server', 'stopped'],
      ['folder', dir],
    ];
  if (address === null)
    return [
      ['server', 'starting'],
      ['process', String(pid)],
      ['folder', dir],
    ];
  return [
    ['server', ready ? 'running and ready' : 'running, but not ready'],
    ['address', address],
    ['workers', String(workers)],
    ...(core === null ? [] : [['core', core] satisfies [string, string]]),
    ['process', String(pid)],
    ['since', startedAt ?? ''],
    ['folder', dir],
  ];
}

function diskPairs({ disk, nodes }: Status): [name: string, value: string][] {
  const files: [string, string][] = [['files', bytesText(disk.filesBytes)]];
  // What is in PostgreSQL and in a bucket is not in this folder, and would be shown as nothing.
  if (nodes !== undefined) return disk.filesBytes === 0 ? [] : files;
  return [['store', bytesText(disk.storeBytes)], ...files];
}

function nodesTable({ nodes }: Status): string[] {
  if (nodes === undefined) return [];
  if (nodes.length === 0) return ['', 'No node is running on this store.'];
  const rows = nodes.map(({ node, host, version, workers, startedAt }) => [
    node,
    host,
    version,
    String(workers.length),
    new Date(startedAt).toISOString(),
  ]);
  return ['', table(['node', 'machine', 'version', 'web workers', 'since'], rows)];
}

function nextText({ running, ready, dir }: Status): string {
  if (!running) return nextSteps(`collab start --dir ${shellWord(dir)}`);
  return ready ? '' : nextSteps(`collab doctor --dir ${shellWord(dir)}`);
}
