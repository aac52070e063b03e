import t from 'tap';
import type { ProcessChannel } from '../../src/cluster/channel.ts';
import type { Message } from '../../src/cluster/messages.ts';
import { Watchdog } from '../../src/cluster/watchdog.ts';
import { Worker, type WorkerEnd } from '../../src/cluster/worker.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLogger } from '../../src/observability/log.ts';

interface FakeProcess {
  readonly worker: Worker;
  /** Whether it answers pings. */
  answers: boolean;
  /** Answers the last ping. */
  readonly answer: () => void;
  readonly killed: () => boolean;
  /** How often it was woken. */
  readonly wakes: () => number;
  readonly pings: () => number;
}

function setUp(timeoutSeconds = 10) {
  const lines: Record<string, unknown>[] = [];
  const time = { now: 5_000 };
  const stopped = new Set<number | undefined>();
  /** Processor time that runnable workers get each second, in ticks of 10 ms; those that are not here sleep. */
  const share = new Map<number, number>();
  const watchdog = new Watchdog({
    timeoutMs: timeoutSeconds * 1_000,
    now: () => time.now,
    statOf: (pid) => ({
      state: stopped.has(pid) ? 'T' : share.has(pid) ? 'R' : 'S',
      cpuTicks: ((share.get(pid) ?? 0) * time.now) / 1_000,
    }),
    log: createLogger({
      level: 'info',
      name: 'primary',
      destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    }),
  });
  const config = loadConfig({ dir: t.testdirName, env: {}, flags: {} });
  let made = 0;
  /** A worker that is ready by default. */
  const add = ({ ready = true } = {}): FakeProcess => {
    const pid = ++made;
    const state = { killed: false, pings: 0, wakes: 0 };
    const listeners: ((message: Message) => void)[] = [];
    let end: (end: WorkerEnd) => void = () => {};
    const ended = new Promise<WorkerEnd>((resolve) => (end = resolve));
    const receive = (message: Message): void => listeners.forEach((listener) => listener(message));
    const answer = (): void => receive({ type: 'pong', data: {} });
    const channel: ProcessChannel = {
      send: ({ type }) => {
        if (type !== 'ping') return;
        state.pings++;
        if (fake.answers) answer();
      },
      onMessage: (listener) => {
        listeners.push(listener);
        return () => {};
      },
      onClose: () => {},
      close: () => {},
    };
    const kill = (): void => {
      state.killed = true;
      end({ code: null, signal: 'SIGKILL' });
    };
    const wake = (): void => void state.wakes++;
    const worker = new Worker({ pid, channel, ended, kill, wake }, 'web', {
      config,
      workerId: `web-${pid}`,
      node: 'a',
      owner: `web-${pid}`,
      port: 1,
      startedAt: 0,
    });
    const fake: FakeProcess = {
      worker,
      answers: true,
      answer,
      killed: () => state.killed,
      wakes: () => state.wakes,
      pings: () => state.pings,
    };
    watchdog.watch(worker);
    if (ready) receive({ type: 'ready', data: { port: 1, core: '', coreReason: '', oldCore: false } });
    return fake;
  };
  /** Advances the time by seconds, with a check at the end of each. */
  const pass = (seconds: number): void => {
    for (let i = 0; i < seconds; i++) {
      time.now += 1_000;
      watchdog.check();
    }
  };
  return { watchdog, add, pass, time, stopped, share, lines };
}

t.test('a worker that answers is pinged every second and not killed', (t) => {
  const { add, pass, lines } = setUp();
  const one = add();
  pass(100);
  t.equal(one.killed(), false);
  t.equal(one.pings(), 100);
  t.same(lines, []);
  t.end();
});

t.test(
  'a worker that does not answer for the timeout is killed, and the log says which, how long it was silent and what follows',
  async (t) => {
    const { add, pass, lines, stopped } = setUp();
    const [one, two] = [add(), add()];
    pass(1);
    two.answers = false;
    pass(10);
    t.equal(two.killed(), false, 'it answered less than 10 s ago');
    stopped.add(2);
    pass(1);
    t.equal(two.killed(), true);
    t.equal(one.killed(), false);
    t.equal(two.pings(), 2, 'no ping while one is unanswered');
    t.match(lines, [{ level: 'error', hung: 'web-2', workerPid: 2, silentMs: 10_000, stopped: true }]);
    t.equal(
      lines[0]?.['msg'],
      'worker web-2 has not answered the primary for 10 s and is killed (SIGKILL): it was stopped by a signal (SIGSTOP); a new worker replaces it',
    );
    t.same(two.worker.explain({ code: null, signal: 'SIGKILL' }), {
      reason: 'it did not answer the primary for 10 s',
      logged: true,
      exitCode: null,
    });
    await two.worker.ended;
    pass(30);
    t.equal(lines.length, 1, 'once');
  },
);

t.test('a worker that is silent for two seconds is woken, in case it has missed the release of a lock', async (t) => {
  const { add, pass } = setUp();
  const [one, two] = [add(), add()];
  pass(1);
  two.answers = false;
  pass(2);
  t.equal(two.wakes(), 0);
  pass(3);
  t.equal(two.wakes(), 3, 'and then at each check');
  two.answers = true;
  two.answer();
  pass(20);
  t.same([one.wakes(), two.wakes(), two.killed()], [0, 3, false]);
});

t.test('a worker that waits for a processor is killed when it has had as much of it as the timeout', async (t) => {
  const { add, pass, share } = setUp();
  const [starved, asleep] = [add(), add()];
  pass(1);
  starved.answers = asleep.answers = false;
  // A quarter of a core, but for the first second, in which it is not known.
  share.set(1, 25);
  pass(11);
  t.same([starved.killed(), asleep.killed()], [false, true], 'what sleeps waits for no processor');
  await asleep.worker.ended;
  pass(26);
  t.equal(starved.killed(), false, 'it has run for less than 10 s');
  pass(1);
  t.equal(starved.killed(), true);
});

t.test('a worker that gets no processor is killed after six times the timeout', (t) => {
  const { add, pass, share, lines } = setUp();
  const one = add();
  pass(1);
  one.answers = false;
  share.set(1, 0);
  pass(60);
  t.equal(one.killed(), false);
  pass(1);
  t.equal(one.killed(), true);
  t.match(lines, [{ silentMs: 60_000, stopped: false }]);
  t.end();
});

t.test('a slow worker that answers in time is not killed, and its time starts over', (t) => {
  const { add, pass } = setUp();
  const one = add();
  one.answers = false;
  for (let i = 0; i < 5; i++) {
    pass(10);
    one.answer();
  }
  t.equal(one.killed(), false);
  t.end();
});

t.test('time in which the primary did not run does not count', (t) => {
  const { add, pass, time } = setUp();
  const one = add();
  one.answers = false;
  pass(5);
  time.now += 3_600_000;
  pass(1);
  t.equal(one.killed(), false, 'the machine slept for an hour');
  pass(5);
  t.equal(one.killed(), true, 'but the second after counts');
  t.end();
});

t.test(
  'of several workers that wait for each other, the one silent for longest is killed first, and the others get time to answer',
  (t) => {
    const { add, pass } = setUp();
    const [holder, waiting] = [add(), add()];
    pass(1);
    holder.answers = false;
    pass(1);
    waiting.answers = false;
    pass(10);
    t.same([holder.killed(), waiting.killed()], [true, false]);
    pass(2);
    t.same([waiting.killed()], [false], 'it gets 2 s more');
    pass(1);
    t.same([waiting.killed()], [true]);
    t.end();
  },
);

t.test(
  'a stopped worker is killed before one that waits for its lock, and all stopped workers are killed at once',
  (t) => {
    const { add, pass, stopped } = setUp();
    const [waiting, first, second] = [add(), add(), add()];
    for (const each of [waiting, first, second]) each.answers = false;
    for (const each of [first, second]) stopped.add(each.worker.pid);
    pass(11);
    t.same([waiting.killed(), first.killed(), second.killed()], [false, true, true]);
    t.end();
  },
);

t.test('a starting worker gets a minute', (t) => {
  const { add, pass } = setUp();
  const starting = add({ ready: false });
  starting.answers = false;
  pass(60);
  t.equal(starting.killed(), false);
  pass(1);
  t.equal(starting.killed(), true);
  t.end();
});

t.test('a worker that hangs while it drains is killed too, and the log announces no replacement', (t) => {
  const { add, pass, lines } = setUp();
  const one = add();
  one.worker.drain('roll');
  one.answers = false;
  pass(11);
  t.equal(one.killed(), true);
  t.match(String(lines[0]?.['msg']), 'its event loop was blocked; it was draining');
  t.end();
});
