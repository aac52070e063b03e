import { readFileSync } from 'node:fs';

/** Files of one process at most: the tests of one process share a core. */
const GROUP_SIZE = 12;
/** The same for a folder of `SHARED`, where a process has a browser and a server. */
const SHARED_GROUP_SIZE = 16;

/** Folders in the order in which they begin: those with the longest files first. */
const FIRST = [
  'cluster',
  'browser',
  'fuzz',
  'adapters',
  'cli',
  'plugins',
  'package',
  'client',
  'net',
  'notifications',
  'http',
  'workers',
  'deploy',
  'demo',
  'spec',
  'realtime',
];

/**
 * What a file does to its process, or measures of it, so that it needs one of its own: exit, signals, the environment,
 * processor time and memory, the event loop, globals.
 */
const OWN_PROCESS =
  /process\.(?:env\[[^\]]*\] =|exit|on\(|once\(|kill\(process|memoryUsage|cpuUsage|chdir|setuid|seteuid)|delete process\.env|t\.intercept|globalThis\.|globalThis as|setFlagsFromString|eventLoopUtilization|monitorEventLoopDelay|unhandledRejection|defineProperty\(process/;

/** Folders whose files share a process whatever their text says: it is that of pages. They share a browser, too. */
const SHARED = ['browser'];

/** Folders whose subject are files and disks, so that their files are on one. */
const ON_DISK = ['adapters', 'cli', 'cluster', 'lib'];

/** Whether the temporary files of these tests, of one folder, have to be on a disk. */
export function needDisk(files: readonly string[]): boolean {
  return files.some((file) => ON_DISK.includes(file.split('/')[1] ?? ''));
}

/**
 * Divides test files into processes. Files of a folder share one unless their text shows that they need one of their
 * own.
 *
 * @param files paths from the project's top
 * @returns the files of each process, in the order in which processes begin
 */
export function planJobs(files: readonly string[]): string[][] {
  const folders = new Map<string, string[]>();
  for (const file of files) {
    const folder = file.split('/').slice(1, -1).join('/');
    folders.set(folder, [...(folders.get(folder) ?? []), file]);
  }
  const rank = (folder: string): number => (FIRST.includes(folder) ? FIRST.indexOf(folder) : FIRST.length);
  return [...folders.entries()]
    .toSorted(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b))
    .flatMap(([folder, members]) => {
      const alone = members.filter((file) => !SHARED.includes(folder) && OWN_PROCESS.test(readFileSync(file, 'utf8')));
      const shared = members.filter((file) => !alone.includes(file));
      const count = Math.ceil(shared.length / (SHARED.includes(folder) ? SHARED_GROUP_SIZE : GROUP_SIZE));
      // Every count-th file, so that long neighbours, such as the parts of one suite, are in different processes.
      const groups = Array.from({ length: count }, (_, i) => shared.filter((_file, k) => k % count === i));
      return [...alone.map((file) => [file]), ...groups];
    });
}
