import type { Command } from 'commander';
import { openBlobs, openTransfer } from '../../engines.ts';
import { lockDataFolder } from '../../cluster/data-folder-lock.ts';
import { hasStoreInFolder } from '../../config/engines.ts';
import type { Config } from '../../config/schema.ts';
import { ensureFolder, removeEmptyFolders } from '../../lib/files/durable-files.ts';
import { shellWord } from '../../lib/shell-word.ts';
import type { StoreTransfer } from '../../ports/store-transfer.ts';
import { addCommand } from '../command.ts';
import { Failure, usageFailure } from '../failure.ts';
import { hasStore, noFolderFailure } from '../shared/folder.ts';
import { invocationOf, type Invocation } from '../shared/invocation.ts';
import { loadFolderConfig } from '../shared/open-store.ts';
import { findRunningServer } from '../shared/running-server.ts';
import { interruptible } from '../terminal/interruption.ts';
import { keyValues, nextSteps, printResult } from '../terminal/output.ts';
import { bytesText, Progress } from '../terminal/progress.ts';
import { confirmDestruction } from '../terminal/prompt.ts';
import { claimTarget, requireNoFiles, requireOwnFiles } from './claim-target.ts';
import { lockMigration } from './lock-migration.ts';
import { move, type MoveResult } from './move.ts';
import { hasSameFiles, hasSameStore, loadTargetConfig, type TargetConfig } from './target-config.ts';
import { undo } from './undo.ts';

/** How many missing or damaged files are shown by name; --json has all. */
const SHOWN_NAMES = 5;

interface MigrateOptions {
  readonly to?: string;
  readonly prepare?: true;
  readonly undo?: true;
  readonly yes?: true;
}

/** Adds `migrate`. */
export function register(program: Command): void {
  addCommand(program, 'migrate', {
    summary: 'Move all data to another store and other files: from the folder to PostgreSQL and S3, or back.',
    details:
      'Copies records, events and files while servers are running, then what has changed meanwhile, until that is ' +
      'little. Then the old store refuses writes (503) for some seconds, the rest is copied, and the old store is ' +
      'marked as moved: no server starts on it any more. Everything is read back and compared. Epoch and positions ' +
      'of events stay, so clients resume on the new server. Interrupted at any moment, the same command goes on where ' +
      'it ended; an unfinished target cannot be served. The target must be empty. Variables (COLLAB_*) are those of ' +
      'the old configuration.',
    examples: [
      'collab migrate --to /srv/collab-cluster --prepare',
      'collab migrate --to /srv/collab-cluster/config.json --yes',
      'collab migrate --undo --dir /srv/collab',
    ],
  })
    .option('--to <config>', 'config.json of the new server, or the folder that has it.')
    .option(
      '--prepare',
      'Only copy, while servers go on writing. The same command without it copies the rest and ends.',
    )
    .option('--undo', 'Let servers use the store of --dir again, as it was when it was moved.')
    .option('--yes', 'Do not ask.')
    .action(migrate);
}

async function migrate(options: MigrateOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  if ((options.to === undefined) === (options.undo === undefined))
    throw usageFailure('Either --to <config> or --undo is required.');
  const config = await loadFolderConfig(at.dir);
  if (!hasStore(config)) throw noFolderFailure(at.dir);
  if (options.to === undefined) return undo(at, config, options.yes === true);
  const to = loadTargetConfig(options.to);
  if (hasSameStore(config, to.config))
    throw usageFailure(
      `The configuration in ${to.dir} names the store that the data is in already, so there is nothing to move.`,
      'Set store.url or another dataDir there. To move uploaded files alone, copy them with the tools of S3 while no server runs.',
    );
  if (options.prepare !== true)
    await confirmDestruction({
      warning:
        'This moves all data to the new configuration. In its last seconds the server refuses writes, and stays so: ' +
        'start the new one then.',
      answer: 'move',
      yes: options.yes === true,
    });
  const result = await interruptible((signal) => moveAll(config, to, options.prepare === true, signal));
  report(at, config, to, result, options.prepare === true);
}

/** Null if the data had been moved before. */
async function moveAll(
  config: Config,
  to: TargetConfig,
  prepareOnly: boolean,
  signal: AbortSignal,
): Promise<MoveResult | null> {
  const closings: (() => unknown)[] = [];
  const progress = new Progress();
  try {
    const release = await lockMigration(config);
    closings.push(release);
    const source = await openTransfer(config);
    closings.push(() => source.close());
    closings.push(await lockTarget(config, to));
    const target = await openTransfer(to.config);
    closings.push(() => target.close());
    return await moveBetween(source, target, { config, to, prepareOnly, signal, progress });
  } finally {
    progress.end();
    for (const close of closings.toReversed()) await close();
  }
}

async function moveBetween(
  source: StoreTransfer,
  target: StoreTransfer,
  {
    config,
    to,
    prepareOnly,
    signal,
    progress,
  }: {
    readonly config: Config;
    readonly to: TargetConfig;
    readonly prepareOnly: boolean;
    readonly signal: AbortSignal;
    readonly progress: Progress;
  },
): Promise<MoveResult | null> {
  const blobs = hasSameFiles(config, to.config)
    ? undefined
    : { source: await openBlobs(config), target: await openBlobs(to.config) };
  const claim = await claimTarget(source, target, async () => {
    if (blobs !== undefined) await requireNoFiles(blobs.target);
  });
  if (claim === 'unfinished' && blobs !== undefined) await requireOwnFiles(source, target, blobs.target);
  return claim === 'done' ? null : move({ source, target, blobs, prepareOnly, progress, signal });
}

/** Keeps a server from starting in the folder of a target. Returns what ends that. */
async function lockTarget(config: Config, { config: { dataDir } }: TargetConfig): Promise<() => Promise<void>> {
  // A configuration that shares the folder with that of the source has another store.
  if (dataDir === config.dataDir) return async () => {};
  const created = await ensureFolder(dataDir);
  const lock = await lockDataFolder(dataDir);
  return async () => {
    lock.release();
    await removeEmptyFolders(created);
  };
}

function report(
  at: Invocation,
  config: Config,
  to: TargetConfig,
  result: MoveResult | null,
  prepareOnly: boolean,
): void {
  const outcome = result === null ? 'moved before' : prepareOnly ? 'prepared' : 'moved';
  printResult(at.json, { outcome, from: at.dir, to: to.dir, verified: true, ...result }, () =>
    result === null
      ? [`The data was moved to ${to.dir} before.`, nextSteps(`collab start --dir ${shellWord(to.dir)}`)].join('\n')
      : describe(at, config, to, result),
  );
  const faults = result === null ? 0 : result.faults.missing.length + result.faults.damaged.length;
  if (faults > 0)
    throw new Failure(
      `Everything is there that the old server had, but ${faults === 1 ? 'one file was' : `${faults} files were`} lost or damaged there before.`,
      ['Restore these files from a backup, or delete their comments; `collab doctor --deep` names them.'],
    );
}

function describe(at: Invocation, config: Config, to: TargetConfig, result: MoveResult): string {
  const { records, streams, events, files, faults, stoppedMs } = result;
  const names = [...faults.missing, ...faults.damaged].slice(0, SHOWN_NAMES);
  const summary = keyValues([
    ['records', String(records)],
    ['events', `${events} in ${streams} streams`],
    ['files', files === null ? 'stay where they are' : `${files.count}, ${bytesText(files.bytes)}`],
    ...(names.length === 0 ? [] : [['lost or damaged before', names.join(', ')] as const]),
    ...(stoppedMs === null ? [] : [['writes stopped for', `${(stoppedMs / 1_000).toFixed(1)} s`] as const]),
  ]);
  if (stoppedMs === null)
    return [
      'Copied, and read back and compared, everything so far. The old server goes on.',
      '',
      summary,
      nextSteps(`collab migrate --to ${shellWord(to.dir)} --yes`),
    ].join('\n');
  const running = findRunningServer(config.dataDir);
  return [
    `Moved everything to ${to.dir}, and read it back and compared it.`,
    ...(hasStoreInFolder(config)
      ? []
      : ['All nodes of the old server refuse writes now: stop them, also on other machines.']),
    '',
    summary,
    nextSteps(
      ...(running === null
        ? []
        : [
            `kill -TERM ${running.pid}   (the old server${hasStoreInFolder(config) ? '' : ' here'}, which refuses writes)`,
          ]),
      `collab start --dir ${shellWord(to.dir)}`,
      `collab migrate --undo --dir ${shellWord(at.dir)}   (to go back, without what is written from now on)`,
    ),
  ].join('\n');
}
