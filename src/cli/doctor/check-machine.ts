import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../../config/schema.ts';
import { chooseCore, type CoreChoice } from '../../net/core-check.ts';
import { NATIVE_PLATFORMS } from '../../net/uws/native-core.ts';
import { glibcVersion } from '../../lib/process/glibc-version.ts';
import { type Check, ok, warn } from './check.ts';
import { nodeSupport } from '../node-version.ts';

const FEW_FILES = 4_096;

/**
 * The setting (Linux 5.14 and later) that moves queued connections of a closed listen socket to others that share its
 * port.
 */
const MIGRATION_SETTING = '/proc/sys/net/ipv4/tcp_migrate_req';

/** The part of Node's diagnostic report that is used. */
interface Report {
  readonly userLimits?: { readonly open_files?: { readonly soft?: number | string } };
}

/**
 * Checks the machine: Node, the HTTP core, the limit of open files, and how rolling restarts affect new connections.
 *
 * @param running the core of the running server; null if none is running, or it is not known
 */
export async function checkMachine(core: Config['core'], running: string | null): Promise<Check[]> {
  return [
    checkNode(),
    await checkHttpCore(core, running),
    checkOpenFiles(process.report.getReport() as Report),
    checkMigration(),
  ];
}

function checkNode(): Check {
  const libc = glibcVersion();
  const found = `${process.versions.node} on ${process.platform} ${process.arch}${libc === null ? '' : `, glibc ${libc}`}`;
  if (nodeSupport(process.versions.node) === 'tested') return ok('node', found);
  return warn('node', `${found}: Collab is not tested with this version`, 'Install Node 24 or 22.');
}

async function checkHttpCore(setting: Config['core'], running: string | null): Promise<Check> {
  const choice = await chooseCore(setting);
  const chosen = checkChoice(setting, choice);
  if (running === null) return chosen;
  const { name, level, finding } = chosen;
  if (level === 'fail')
    return { ...chosen, finding: `the running server uses ${running}; a start from this shell would fail: ${finding}` };
  if (running === choice.name) return { ...chosen, finding: `${finding}; the running server uses it` };
  return warn(
    name,
    `the running server uses ${running}; a start from this shell would use ${finding}`,
    'A restart from this shell changes the core. To keep it, start with the version of Node and the ' +
      'option core with which the server was started.',
  );
}

/** The check of the core that a start from this shell would use. */
function checkChoice(setting: Config['core'], { kind, reason, check }: CoreChoice): Check {
  const name = 'http core';
  if (kind === 'uws' && check !== null) return { name, ...check };
  const finding = `node, which is slower than uWebSockets.js (${reason})`;
  return setting === 'node'
    ? ok(name, finding)
    : warn(
        name,
        finding,
        `Set core to node if that is fast enough. Otherwise run another version of Node: ${NATIVE_PLATFORMS}.`,
      );
}

function checkOpenFiles({ userLimits }: Report): Check {
  const soft = userLimits?.open_files?.soft;
  if (typeof soft !== 'number' && !/^\d+$/.test(String(soft))) return ok('open files', String(soft ?? 'unknown'));
  if (Number(soft) >= FEW_FILES) return ok('open files', `${soft} per process`);
  return warn(
    'open files',
    `only ${soft} per process; every socket needs one`,
    'Raise the limit: `ulimit -n 65536`, or LimitNOFILE=65536 in the systemd unit.',
  );
}

function checkMigration(): Check {
  const name = 'rolling restart';
  if (!existsSync(MIGRATION_SETTING)) return ok(name, 'SIGHUP may reset a few new connections under load');
  if (readFileSync(MIGRATION_SETTING, 'utf8').trim() === '1')
    return ok(name, 'SIGHUP resets no connections: net.ipv4.tcp_migrate_req is 1');
  return ok(
    name,
    'SIGHUP may reset a few new connections under load; `sysctl -w net.ipv4.tcp_migrate_req=1` prevents it',
  );
}
