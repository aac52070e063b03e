// The store on a disk of which one kind of call fails. Without DISK_MATRIX a small part, with DISK_MATRIX=1 every error
// of the operating system in every call, which takes about ten minutes, or 2/4 the second quarter of that:
//
//   DISK_MATRIX=1 npm test -- --timeout 3600 test/adapters/lmdb-failing-disk.test.ts
import { constants } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { StoreBounds } from '../../src/adapters/lmdb/bounds.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { isDiskError, systemErrorOf } from '../../src/lib/errno.ts';
import { Random } from '../fuzz/random.ts';
import { until } from '../helpers/cluster.ts';
import { caseOf, type FailingCalls, type FailingDisk, failingDisk, noFailingDisk } from '../helpers/failing-disk.ts';
import { killLines, type LineProcess, startFixtureWith } from '../helpers/line-process.ts';
import { verifyWrites } from '../helpers/verify-writes.ts';

const WHOLE = process.env['DISK_MATRIX'] !== undefined;
const [PART = 1, PARTS = 1] = (process.env['DISK_MATRIX'] ?? '').split('/').map(Number);
const timeout = WHOLE ? 3_600_000 : 180_000;
/** A case or a start that takes longer hangs. */
const HANGS_MS = WHOLE ? 20_000 : 60_000;
const CALLS = [
  'open',
  'pread',
  'pwrite',
  'write',
  'fdatasync',
  'fsync',
  'fallocate',
  'ftruncate',
  'rename',
  'mkdir',
  'unlink',
];
/** Calls without which no commit can be on disk. */
const NEEDED: ReadonlySet<string> = new Set(['pwrite', 'fdatasync']);
/** The calls with which LMDB opens its files. */
const OPENING: ReadonlySet<string> = new Set(['open', 'pread', 'pwrite', 'ftruncate', 'any']);

type ErrorName = keyof typeof constants.errno;

/** All errors of the operating system that LMDB does not answer by trying again without end, each once. */
const ERRORS = [
  ...new Map(
    Object.entries(constants.errno).map(([name, number]) => [
      number,
      (systemErrorOf(Object.assign(new Error(name), { errno: number }))?.name ?? name) as ErrorName,
    ]),
  ).values(),
].filter((name) => name !== 'EINTR');
/** Those that a disk is known to have answered. */
const COMMON: readonly ErrorName[] = ['EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'ESTALE', 'ENOMEM', 'EMFILE'];

const BOUNDS: Readonly<Record<string, Partial<StoreBounds>>> = {
  'small bounds': {
    rotateBytes: 60_000,
    rotationCheckMs: 0,
    checkpointBytes: 8_000,
    checkpointWaitMs: 0,
    ringRecords: 64,
    chunkEvents: 3,
    arenaBlockBytes: 4_000,
    tableCacheEntries: 10,
  },
  'the bounds of a server': {},
};

/**
 * Every error in every call, once and without end, the first such call or a later one, and in any call at random; or a
 * part of that.
 */
function plan(random: Random, part: number): FailingCalls[] {
  let id = 0;
  const whole = ERRORS.flatMap((errno) =>
    CALLS.flatMap((call) =>
      [0, 1].map((times): FailingCalls => ({ id: id++, call, errno, times, skip: random.pick([0, 0, 1, 2, 5, 12]) })),
    ),
  );
  const atRandom = (errno: ErrorName): FailingCalls => ({
    id: id++,
    call: 'any',
    errno,
    times: -random.pick([3, 10, 30]),
    skip: random.below(20),
  });
  if (WHOLE) return [...whole, ...ERRORS.map(atRandom)].filter(({ id }) => id % PARTS === PART % PARTS);
  return Array.from({ length: part }, (_, i): FailingCalls => ({
    id: i,
    call: CALLS[i % CALLS.length] as string,
    errno: random.pick(COMMON),
    times: random.below(2),
    skip: random.pick([0, 0, 1, 3]),
  })).concat(atRandom(random.pick(COMMON)));
}

/** Whether a refusal says which error the disk has answered: of a full one in words. */
const namesError = (said: string, errno: FailingCalls['errno']): boolean =>
  said.includes(errno) || (errno === 'ENOSPC' && said.includes('disk is full'));

const started = (disk: FailingDisk, bounds: Partial<StoreBounds>): LineProcess =>
  startFixtureWith(disk.env, 'store-on-failing-disk', join(disk.folder, 'store'), JSON.stringify(bounds));
const hasEnded = ({ child }: LineProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/**
 * Whether a process may end so: it says that it has lost the store; or it is the abort that disk-gate.ts keeps to one
 * per process; or the error came to LMDB while it opened a file, and not before (file-check.ts).
 */
function mayEnd({ child, lines }: LineProcess, { call, times, skip }: FailingCalls): boolean {
  if (child.exitCode === 3) return lines.some((line) => line.startsWith('lost '));
  if (child.signalCode === 'SIGABRT') return call === 'pwrite' || call === 'any';
  return child.signalCode === 'SIGSEGV' && (times !== 0 || skip > 0) && OPENING.has(call);
}

/** What is wrong with what a process has printed during a case. */
function faultsOf(victim: LineProcess, lines: readonly string[], failing: FailingCalls): string[] {
  const isOfDisk = isDiskError({ name: failing.errno, meaning: '' });
  const faults = lines.filter((line) => isOfDisk && line.startsWith('odd '));
  if (!hasEnded(victim)) faults.push(...lines.filter((line) => line.startsWith('read ')));
  if (hasEnded(victim) && !mayEnd(victim, failing))
    faults.push(`ended by ${victim.child.signalCode ?? victim.child.exitCode}`);
  if (failing.times === 0 && failing.skip === 0 && NEEDED.has(failing.call) && lines.includes('flushed'))
    faults.push('a commit that was not flushed was confirmed');
  return faults;
}

async function verifyOn(
  t: Test,
  disk: FailingDisk,
  bounds: Partial<StoreBounds>,
  victims: readonly LineProcess[],
): Promise<void> {
  const store = await openLmdbStore({ path: join(disk.folder, 'store'), minFreeBytes: 0, bounds });
  await verifyWrites(
    t,
    store,
    victims.flatMap(({ lines }) => lines.filter((line) => line.startsWith('+ ')).map((line) => line.slice(2))),
  );
  for await (const { name, fault } of store.faults()) t.fail(`${name} ${fault}`);
  await store.close();
}

for (const [name, bounds] of Object.entries(BOUNDS)) {
  t.test(
    `with ${name}, a store loses and doubles nothing, hangs never, and can be read while calls on its disk fail`,
    { skip: noFailingDisk, timeout },
    async (t) => {
      const disk = failingDisk(t, 'store');
      const victims: LineProcess[] = [];
      const faults: string[] = [];
      let [ends, running] = [0, started(disk, bounds)];
      t.teardown(() => killLines(running));
      const cases = plan(new Random(35), CALLS.length);
      for (const [i, failing] of cases.entries()) {
        if (hasEnded(running) || i === 0) {
          if (i > 0) [ends, running] = [ends + 1, started(disk, bounds)];
          victims.push(running);
          await until(() => running.lines.includes('open') || hasEnded(running), HANGS_MS);
        }
        const before = running.lines.length;
        running.child.stdin?.write(`${caseOf(failing)}\n`);
        const hangs = await until(
          () => running.lines.slice(before).includes('done') || hasEnded(running),
          HANGS_MS,
        ).then(
          () => false,
          () => true,
        );
        if (hangs) {
          faults.push(`${caseOf(failing)} (${failing.errno}): hangs after ${running.lines.slice(before).join('; ')}`);
          await killLines(running);
        }
        disk.heal();
        if (!hangs)
          faults.push(
            ...faultsOf(running, running.lines.slice(before), failing).map(
              (fault) => `${caseOf(failing)} (${failing.errno}): ${fault}`,
            ),
          );
        if (i % 100 === 99) await verifyOn(t, disk, bounds, victims);
      }
      await verifyOn(t, disk, bounds, victims);
      t.strictSame(faults, []);
      // With the bounds of a server no log is rotated, so that hardly more calls are made than those of commits.
      t.ok(disk.failedCalls() > cases.length / (bounds.rotateBytes === undefined ? 8 : 4));
      t.comment(`${cases.length} cases, ${disk.failedCalls()} failed calls, ${ends} processes ended`);
    },
  );
}

t.test(
  'a process that starts on a disk of which calls fail opens the store, or names error and file; it takes nothing for damage',
  { skip: noFailingDisk, timeout },
  async (t) => {
    const bounds = BOUNDS['small bounds'] ?? {};
    const disk = failingDisk(t, 'store');
    const victims: LineProcess[] = [];
    const outcomes = { open: 0, refused: 0, ended: 0 };
    // In a folder without a store. Node.js reports most errors of a recursive mkdir as ENOENT.
    const first: FailingCalls[] = [
      { id: -2, call: 'mkdir', errno: 'EDQUOT', skip: 0, times: 0 },
      { id: -1, call: 'pread', errno: 'EIO', skip: 0, times: 0 },
    ];
    for (const failing of [...first, ...plan(new Random(36), 4)]) {
      const isOfDisk = isDiskError({ name: failing.errno, meaning: '' });
      disk.failCalls(failing);
      const victim = started(disk, bounds);
      victims.push(victim);
      const hangs = await until(() => victim.lines.length > 0 || hasEnded(victim), HANGS_MS).then(
        () => false,
        () => true,
      );
      await killLines(victim);
      disk.heal();
      const [said = ''] = victim.lines;
      const named = `${caseOf(failing)} (${failing.errno}): ${said} ${victim.child.signalCode ?? ''}`;
      if (hangs) t.fail(`${named} hangs`);
      else if (said === 'open') outcomes.open++;
      else if (said.startsWith('refused')) outcomes.refused++;
      else if (victim.child.signalCode !== 'SIGKILL' && mayEnd(victim, failing)) outcomes.ended++;
      else t.fail(named);
      if (/damage|restore/.test(said)) t.fail(named);
      if (said.startsWith('refused') && isOfDisk && !(namesError(said, failing.errno) && said.includes(disk.folder)))
        t.fail(named);
    }
    await verifyOn(t, disk, bounds, victims);
    t.comment(JSON.stringify(outcomes));
  },
);
