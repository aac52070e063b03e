import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { StartError } from '../../src/cluster/exit.ts';
import { currentProcess } from '../../src/lib/process/process-identity.ts';
import { lockDataFolder, lockHolder } from '../../src/cluster/data-folder-lock.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';

const lockFile = (folder: string): string => join(folder, 'collab.lock');

/** Starts a process that tries to get the lock, prints the result, and keeps the lock until its input ends. */
function taker(folder: string) {
  const child = spawn(process.execPath, [...fixtureArgs('lock-taker'), folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = new Promise((resolve) => child.once('exit', resolve));
  const said = new Promise<string>((resolve) =>
    child.stdout.once('data', (data: Buffer) => resolve(data.toString().trim())),
  );
  return { child, exit, said };
}

t.test('one process has the lock at a time; once released, the folder is free', async (t) => {
  const folder = t.testdir();
  const lock = await lockDataFolder(folder);
  t.equal(lock.tookOver, false);
  t.equal(lockHolder(folder)?.pid, process.pid);
  await t.rejects(
    lockDataFolder(folder),
    new StartError(
      `The data folder ${folder} is in use by process ${process.pid} on ${currentProcess().host}. Stop that server first, or start this one with another --dir.`,
    ),
  );
  lock.release();
  lock.release();
  t.equal(lockHolder(folder), null);
  t.same(readdirSync(folder), [], 'nothing is left behind');
  (await lockDataFolder(folder)).release();
});

t.test('the lock of a killed process is taken over', async (t) => {
  const folder = t.testdir();
  const other = taker(folder);
  t.equal(await other.said, 'taken');
  t.equal(lockHolder(folder)?.pid, other.child.pid);
  await t.rejects(lockDataFolder(folder), { name: 'StartError', exitCode: 1 });
  other.child.kill('SIGKILL');
  await other.exit;
  t.equal(lockHolder(folder), null);
  const lock = await lockDataFolder(folder);
  t.equal(lock.tookOver, true);
  lock.release();
  t.same(readdirSync(folder), []);
});

t.test(
  'a pid that now belongs to another process does not have the lock',
  { skip: currentProcess().startTime === null && 'no /proc here' },
  async (t) => {
    const folder = t.testdir({ 'collab.lock': JSON.stringify({ ...currentProcess(), startTime: '1' }) });
    t.equal((await lockDataFolder(folder)).tookOver, true);
  },
);

t.test('a lock from before the last boot is not valid', async (t) => {
  const folder = t.testdir({ 'collab.lock': JSON.stringify({ ...currentProcess(), boot: 'another' }) });
  t.equal((await lockDataFolder(folder)).tookOver, true);
});

t.test('a lock file that a power cut left empty is not valid', async (t) => {
  const folder = t.testdir({ 'collab.lock': '' });
  t.equal((await lockDataFolder(folder)).tookOver, true);
});

t.test('for an owner that cannot be checked, the age of the file decides', async (t) => {
  const elsewhere = JSON.stringify({ ...currentProcess(), namespace: 'pid:[1]' });
  const folder = t.testdir({ 'collab.lock': elsewhere });
  t.equal(lockHolder(folder)?.namespace, 'pid:[1]', 'touched just now: it runs');
  const longAgo = new Date(Date.now() - 11_000);
  utimesSync(lockFile(folder), longAgo, longAgo);
  t.equal(lockHolder(folder), null, 'silent for 11 s: it has ended');
  t.equal((await lockDataFolder(folder)).tookOver, true);
});

t.test(
  'an owner that cannot be checked keeps the lock while it touches its file, even if the clock makes the file look old',
  async (t) => {
    const folder = t.testdir({ 'collab.lock': JSON.stringify({ ...currentProcess(), namespace: 'pid:[1]' }) });
    let yearsAgo = Date.now() - 2e11;
    const touch = (): void => utimesSync(lockFile(folder), new Date(yearsAgo), new Date(yearsAgo));
    touch();
    const beat = setInterval(() => {
      yearsAgo += 500;
      touch();
    }, 500);
    await t.rejects(lockDataFolder(folder), { name: 'StartError', exitCode: 1 });
    clearInterval(beat);
  },
);

t.test('a takeover that crashed halfway is itself taken over', async (t) => {
  const dead = JSON.stringify({ ...currentProcess(), boot: 'another' });
  const folder = t.testdir({ 'collab.lock': dead });
  const { createHash } = await import('node:crypto');
  const guard = `${lockFile(folder)}.${createHash('sha256').update(dead).digest('hex').slice(0, 16)}`;
  writeFileSync(guard, dead);
  const lock = await lockDataFolder(folder);
  t.equal(lock.tookOver, true);
  lock.release();
  t.same(readdirSync(folder), []);
});

t.test('a lock that another process has taken over is not released', async (t) => {
  const folder = t.testdir();
  const lock = await lockDataFolder(folder);
  const others = JSON.stringify({ ...currentProcess(), boot: 'another' });
  writeFileSync(lockFile(folder), others);
  lock.release();
  t.equal(readFileSync(lockFile(folder), 'utf8'), others);
});

t.test('of several starts that race for a stale lock, one wins each time', async (t) => {
  for (let round = 0; round < 30; round++) {
    const folder = t.testdir({ 'collab.lock': JSON.stringify({ ...currentProcess(), boot: 'another', round }) });
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataFolder(folder)));
    const won = results.filter((result) => result.status === 'fulfilled');
    if (won.length !== 1) t.fail(`round ${round}: ${won.length} winners`);
    for (const { value } of won) value.release();
    if (existsSync(lockFile(folder))) t.fail(`round ${round}: the lock is left`);
  }
});

t.test('of several processes that race for a stale lock, one wins', async (t) => {
  const folder = t.testdir({ 'collab.lock': JSON.stringify({ ...currentProcess(), boot: 'another' }) });
  const takers = Array.from({ length: 4 }, () => taker(folder));
  const said = await Promise.all(takers.map((each) => each.said));
  t.same(said.toSorted(), ['refused', 'refused', 'refused', 'taken']);
  for (const { child } of takers) child.stdin.end();
  await Promise.all(takers.map(({ exit }) => exit));
  t.same(readdirSync(folder), []);
});
