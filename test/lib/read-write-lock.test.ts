import t from 'tap';
import { setImmediate } from 'node:timers/promises';
import { ReadWriteLock } from '../../src/lib/concurrency/read-write-lock.ts';

/** Tasks that record when they begin and end, and end when the test says so. */
function createTasks() {
  const lock = new ReadWriteLock();
  const log: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const task = (name: string) => (): Promise<void> => {
    log.push(`${name} begins`);
    return new Promise<void>((resolve, reject) => {
      ends.set(name, (error) => (error === undefined ? resolve() : reject(error)));
    });
  };
  const end = async (name: string, error?: Error): Promise<void> => {
    ends.get(name)?.(error);
    await setImmediate();
  };
  return { lock, log, task, end };
}

t.test('shared tasks run together; an exclusive one waits for them, and later shared ones wait for it', async (t) => {
  const { lock, log, task, end } = createTasks();
  const all = [
    lock.shared(task('a')),
    lock.shared(task('b')),
    lock.exclusive(task('X')),
    lock.shared(task('c')),
    lock.exclusive(task('Y')),
  ];
  t.strictSame(log, ['a begins', 'b begins']);
  await end('a');
  t.strictSame(log.splice(0), ['a begins', 'b begins']);
  await end('b');
  t.strictSame(log.splice(0), ['X begins']);
  await end('X');
  t.strictSame(log.splice(0), ['Y begins']);
  await end('Y');
  t.strictSame(log.splice(0), ['c begins']);
  await end('c');
  await Promise.all(all);
});

t.test('a task that fails frees its place, and its error is passed on', async (t) => {
  const { lock, log, task, end } = createTasks();
  const failing = lock.exclusive(task('X'));
  const next = lock.shared(task('a'));
  const rejected = t.rejects(failing, { message: 'broken' });
  await end('X', new Error('broken'));
  await rejected;
  t.strictSame(log, ['X begins', 'a begins']);
  await end('a');
  await next;
});
