import { createServer, nativeCore } from '../http/listen.ts';
import { type Check, fail, ok, reasonOf, warn } from './check.ts';

const LEAST_NODE = [20, 12] as const;
const FEW_FILES = 4_096;

/** The parts of Node's report that are looked at. */
interface Report {
  readonly header?: { readonly glibcVersionRuntime?: string };
  readonly userLimits?: { readonly open_files?: { readonly soft?: number | string } };
}

/** Looks at the machine: Node, the HTTP core, the limit of open files. */
export function checkMachine(): Check[] {
  const report = process.report.getReport() as Report;
  return [checkNode(), checkCore(report), checkOpenFiles(report)];
}

function checkNode(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const enough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  if (enough) return ok('node', process.versions.node);
  return fail('node', `${process.versions.node} is too old`, `Install Node ${LEAST_NODE.join('.')} or later.`);
}

function checkCore(report: Report): Check {
  const libc = report.header?.glibcVersionRuntime;
  const platform = libc === undefined ? process.platform : `glibc ${libc}`;
  try {
    createServer().close();
  } catch (error) {
    return fail('http core', reasonOf(error), 'Use a system and a Node that it is built for.');
  }
  const { file, old } = nativeCore();
  return ok('http core', `${file}, ${old ? 'of 2024' : 'current'}, on ${platform}`);
}

function checkOpenFiles({ userLimits }: Report): Check {
  const soft = userLimits?.open_files?.soft;
  if (typeof soft !== 'number' && !/^\d+$/.test(String(soft))) return ok('open files', String(soft ?? 'unknown'));
  if (Number(soft) >= FEW_FILES) return ok('open files', `${soft} per process`);
  return warn('open files', `only ${soft} per process: every socket is one`, 'Raise it: `ulimit -n 65536`, or LimitNOFILE=65536 in the systemd unit.');
}
