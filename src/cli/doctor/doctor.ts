import type { Command } from 'commander';
import { exists } from '../../lib/files/exists.ts';
import { firstLine } from '../../lib/thrown.ts';
import { ConfigError } from '../../config/error.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { printable } from '../../lib/printable.ts';
import { type Check, fail, ok } from './check.ts';
import { checkDeep } from './check-deep.ts';
import { checkFolder } from './check-folder.ts';
import { checkInboxes } from './check-inboxes.ts';
import { checkMachine } from './check-machine.ts';
import { checkConfiguredPlugins } from './check-plugins.ts';
import { checkQuotas } from './check-quotas.ts';
import { checkServer, runningCore } from './check-server.ts';
import { addCommand } from '../command.ts';
import { Failure } from '../failure.ts';
import { configFile } from '../shared/folder.ts';
import { invocationOf } from '../shared/invocation.ts';
import { withDirOption, printResult } from '../terminal/output.ts';

/** Adds `doctor`. */
export function register(program: Command): void {
  addCommand(program, 'doctor', {
    summary: 'Find problems of the machine, the folder and the server, and show what to do about them.',
    details: 'Exit code 1 if a check fails. Changes nothing.',
    examples: ['collab doctor', 'collab doctor --deep', 'collab doctor --dir /srv/collab --json'],
  })
    .option(
      '--deep',
      'Also read every record, event and file, compare files with their SHA-256, and compare the counts for ' +
        'quotas and inboxes with what is stored. Takes long on a large store.',
    )
    .action(doctor);
}

async function doctor({ deep }: { deep?: true }, command: Command): Promise<void> {
  const { dir, json } = invocationOf(command);
  const config = tryConfig(dir);
  const found = [
    ...(await ('level' in config ? checkMachine('auto', null) : checkMachine(config.core, runningCore(config)))),
    ...(await checkConfigured(dir, config, deep === true)),
  ];
  const checks = found.map((check) => ({
    ...check,
    remedy: check.remedy === null ? null : withDirOption(check.remedy),
  }));
  const failed = checks.filter(({ level }) => level === 'fail').length;
  printResult(json, { ok: failed === 0, checks }, () => checks.map(line).join('\n'));
  if (failed > 0) throw new Failure(`${failed} of ${checks.length} checks failed.`);
}

async function checkConfigured(dir: string, config: Config | Check, deep: boolean): Promise<Check[]> {
  if ('level' in config) return [config];
  const subject = { dir, config };
  // Both may wait for seconds if a process blocks the store.
  const [folder, server] = await Promise.all([checkFolder(subject), checkServer(subject)]);
  return [
    ok(
      'config',
      exists(configFile(dir))
        ? configFile(dir)
        : `there is no ${configFile(dir)}: defaults and COLLAB_* variables are used`,
    ),
    ...folder,
    ...server,
    ...(await checkConfiguredPlugins(subject)),
    ...(deep ? [...(await checkDeep(subject)), ...(await checkQuotas(subject)), ...(await checkInboxes(subject))] : []),
  ];
}

function tryConfig(dir: string): Config | Check {
  try {
    return loadConfig({ dir, env: process.env, flags: {} });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const more = error.problems.length > 1 ? ` (and ${error.problems.length - 1} more)` : '';
    return fail(
      'config',
      `${firstLine(error)}${more}`,
      'Correct it. `collab config check` shows all problems, `collab config example` all options.',
    );
  }
}

function line({ name, level, finding, remedy }: Check): string {
  const found = `${level.padEnd(4)}  ${name.padEnd(11)}  ${printable(finding)}`;
  return remedy === null ? found : `${found}\n${' '.repeat(19)}→ ${remedy}`;
}
