import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { readHead, readRecords } from '../../../domain/audit/audit.ts';
import { exportChain, verifyExport } from '../../../domain/audit/audit-export.ts';
import { type ChainVerdict, verifyChain } from '../../../domain/audit/verify.ts';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { writeNamed } from '../../../lib/files/named-writes.ts';
import { readLines } from '../../../lib/files/read-lines.ts';
import type { AuditHead, AuditRecord } from '../../../model/environments/audit.ts';
import { readManifest } from '../../backup/backup-folder.ts';
import { addCommand, addGroup } from '../../command.ts';
import { Failure, usageFailure } from '../../failure.ts';
import { integerOption, pathArgument } from '../../option-values.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { withStore } from '../../shared/open-store.ts';
import { keyValues, print, printResult, table } from '../../terminal/output.ts';

const ENV_OPTION =
  'Environment whose log it is (default: the log of the server, with admins, environments and restores).';
/** The largest number of records in one list. */
const MAX_LISTED = 1_000;

interface VerifyOptions {
  readonly env?: string;
  readonly file?: string;
  readonly head?: string;
  readonly backup?: string;
}

/** Adds `audit list|verify|export`. */
export function register(program: Command): void {
  const audit = addGroup(
    program,
    'audit',
    'The audit log: who changed keys, settings, environments and admins, erased users and moderated.',
  );

  addCommand(audit, 'list', {
    summary: 'List the latest records of an audit log.',
    examples: [
      'collab audit list',
      'collab audit list --env default --limit 100',
      'collab audit list --env default --json',
    ],
  })
    .option('--env <slug>', ENV_OPTION)
    .option('--limit <n>', `The most records to list, 1 to ${MAX_LISTED}.`, '50')
    .action(list);

  addCommand(audit, 'verify', {
    summary: 'Check that no record of an audit log was changed, removed or reordered.',
    details:
      'Exits with 1 if it finds a fault. Someone who can write the data folder could rewrite the whole log, ' +
      'or cut its end and the head beside it. Only a head ' +
      'that is kept elsewhere shows that: pass one with --head, or a backup, whose manifest contains the heads.',
    examples: [
      'collab audit verify',
      'collab audit verify --env default --backup /backups/collab-2026-05-01',
      'collab audit verify --file audit.ndjson --head 120:6f1c…',
    ],
  })
    .option('--env <slug>', ENV_OPTION)
    .option('--file <file>', 'Check a file of `collab audit export` instead of the log of the server.')
    .option('--head <seq:hash>', 'A head that was noted earlier, which the log must contain.')
    .option('--backup <folder>', 'A backup whose heads the log must contain.')
    .action(verify);

  addCommand(audit, 'export <file>', {
    summary: 'Export an audit log to a file, as JSON lines.',
    details: 'docs/audit.md describes the format. "-" writes to standard output.',
    examples: ['collab audit export audit.ndjson', 'collab audit export default-audit.ndjson --env default'],
  })
    .option('--env <slug>', ENV_OPTION)
    .action(exportLog);
}

async function list({ env, limit }: { env?: string; limit: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const most = integerOption('limit', limit, 1, MAX_LISTED);
  const items = await withStore(at, async (ctx) => {
    const chain = await chainOf(ctx, env);
    const { seq } = await readHead(ctx.store, chain);
    const texts = await readRecords(ctx, chain, Math.max(0, seq - most), most);
    return texts.map((text) => JSON.parse(text) as AuditRecord);
  });
  printResult(at.json, { items }, () =>
    items.length === 0
      ? 'The audit log is empty.'
      : table(['seq', 'time', 'actor', 'action', 'target', 'details'], items.map(rowOf)),
  );
}

async function verify(options: VerifyOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { env, file, backup } = options;
  if (file !== undefined && (env !== undefined || backup !== undefined))
    throw usageFailure('--file cannot be used together with --env or --backup: the file names its environment.');
  const noted = options.head === undefined ? [] : [parseHead(options.head)];
  const verdict: ChainVerdict =
    file === undefined
      ? await withStore(at, async (ctx) => {
          const chain = await chainOf(ctx, env);
          const known = backup === undefined ? [] : await headsIn(resolve(pathArgument('--backup', backup)), chain);
          return verifyChain(ctx, chain, [...noted, ...known]);
        })
      : await verifyExport(readLines(createReadStream(resolve(pathArgument('--file', file)))), noted);
  const { head, faults } = verdict;
  printResult(at.json, { intact: faults.length === 0, ...head, faults }, () =>
    faults.length === 0
      ? `The audit log is intact.\n\n${keyValues([
          ['records', String(head.seq)],
          ['head', `${head.seq}:${head.hash}`],
        ])}`
      : faults.map((fault) => `- ${fault}`).join('\n'),
  );
  if (faults.length > 0)
    throw new Failure(`The audit log has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}.`, [
      'Keep a copy of the data folder, and compare the log with the backups: docs/audit.md says how.',
    ]);
}

async function exportLog(file: string, { env }: { env?: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const path = file === '-' ? null : resolve(pathArgument('<file>', file));
  const lines = await withStore(at, async (ctx) => {
    const texts: string[] = [];
    for await (const line of exportChain(ctx, await chainOf(ctx, env))) texts.push(line);
    return texts;
  });
  if (path === null) return print(lines.join('\n'));
  await writeNamed(path, `${lines.join('\n')}\n`, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST'
      ? new Failure(`${path} exists already, so nothing was written.`, ['Choose a file that does not exist.'])
      : error;
  });
  printResult(
    at.json,
    { file: path, records: lines.length - 2 },
    () => `Wrote ${lines.length - 2} records to ${path}.`,
  );
}

async function chainOf(ctx: Context, env: string | undefined): Promise<string | null> {
  return env === undefined ? null : (await findEnvironment(ctx, env)).id;
}

function parseHead(text: string): AuditHead {
  const [, seq, hash] = /^(\d{1,12}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq === undefined || hash === undefined)
    throw usageFailure(
      '--head must be a position and a hash of 64 hexadecimal digits, as `collab audit verify` prints them: 120:6f1c…',
    );
  return { seq: Number(seq), hash };
}

async function headsIn(folder: string, chain: string | null): Promise<AuditHead[]> {
  const { audit = [] } = await readManifest(folder);
  const heads = audit.filter(({ environmentId }) => environmentId === chain);
  if (heads.length === 0)
    throw new Failure(`The manifest of ${folder} does not name the head of this log.`, [
      'Use a backup that was made since the log began.',
    ]);
  return heads;
}

function rowOf({ seq, at, actor, action, target, details }: AuditRecord): string[] {
  const shown = Object.entries(details).map(([name, value]) => `${name}=${value}`);
  return [
    String(seq),
    at,
    actor.id === null ? actor.kind : `${actor.kind} ${actor.id}`,
    action,
    `${target.kind} ${target.id}`,
    shown.join(' '),
  ];
}
