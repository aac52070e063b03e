import t, { type Test } from 'tap';
import { type ProcessChannel, channelPair } from '../../src/cluster/channel.ts';
import { WorkerExit } from '../../src/cluster/exit.ts';
import type { Message, Role } from '../../src/cluster/messages.ts';
import { Supervisor } from '../../src/cluster/supervisor.ts';
import type { WorkerEnd } from '../../src/cluster/worker.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { createLogger } from '../../src/observability/log.ts';

/** A worker process that is only the other end of a channel. */
class FakeWorker {
  readonly role: Role;
  readonly channel: ProcessChannel;
  readonly received: Message[] = [];
  readonly ended: Promise<WorkerEnd>;
  id = '';
  owner = '';
  #end: (end: WorkerEnd) => void = () => {};
  #listeners: (() => void)[] = [];

  constructor(role: Role, channel: ProcessChannel) {
    this.role = role;
    this.channel = channel;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    channel.onMessage((message) => {
      this.received.push(message);
      if (message.type === 'start') ({ workerId: this.id, owner: this.owner } = message.data);
      for (const listener of this.#listeners.splice(0)) listener();
    });
  }

  async got(type: Message['type']): Promise<Message> {
    for (;;) {
      const found = this.received.find((message) => message.type === type);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#listeners.push(resolve));
    }
  }

  ready(): void {
    this.channel.send({ type: 'ready', data: { port: 8787, core: 'fake', coreReason: '', oldCore: false } });
    this.channel.send({
      type: 'listens',
      data: { announcements: this.role === 'web', publications: this.role === 'web' },
    });
  }

  exit(code: number | null, signal: string | null = null): void {
    this.channel.close();
    this.#end({ code, signal });
  }
}

function cluster(t: Test, webWorkers = 2) {
  const workers: FakeWorker[] = [];
  const lines: Record<string, unknown>[] = [];
  const arrivals: (() => void)[] = [];
  const supervisor = new Supervisor({
    config: {
      ...loadConfig({ dir: t.testdirName, env: {}, flags: {} }),
      shutdown: { drainSeconds: 1, closeSpreadSeconds: 0 },
    },
    port: 8787,
    webWorkers,
    clock: new ManualClock(0),
    log: createLogger({
      level: 'info',
      name: 'primary',
      destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    }),
    spawn: (role) => {
      const [primary, far] = channelPair();
      const worker = new FakeWorker(role, far);
      workers.push(worker);
      for (const arrival of arrivals.splice(0)) arrival();
      return {
        pid: 1_000 + workers.length,
        channel: primary,
        ended: worker.ended,
        kill: () => worker.exit(null, 'SIGKILL'),
        wake: () => {},
      };
    },
  });
  /** Waits for the `index`th process to be started. */
  const worker = async (index: number): Promise<FakeWorker> => {
    for (;;) {
      const found = workers[index];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => arrivals.push(resolve));
    }
  };
  /** Starts the supervisor and reports all workers as ready. */
  const started = async (): Promise<void> => {
    const start = supervisor.start();
    for (const each of workers) each.ready();
    await start;
  };
  return { supervisor, workers, worker, lines, started };
}

/** Ends a worker as soon as it is asked to drain. */
const endWhenTold = (...workers: FakeWorker[]): void => {
  for (const worker of workers) void worker.got('drain').then(() => worker.exit(WorkerExit.intended));
};

/** Makes a worker report a failure and end. */
async function fail(worker: FakeWorker, data: { reason: string; exitCode: number | null }): Promise<void> {
  worker.channel.send({ type: 'failed', data });
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  worker.exit(WorkerExit.logged);
}

t.test('all workers are started at once, and the start completes once all are ready', async (t) => {
  const { supervisor, workers } = cluster(t);
  const start = supervisor.start();
  t.same(
    workers.map(({ role }) => role),
    ['web', 'web', 'background'],
  );
  let over = false;
  void start.then(() => (over = true));
  for (const worker of workers.slice(1)) worker.ready();
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  t.equal(over, false, 'one is not ready');
  workers[0]?.ready();
  t.same(await start, { port: 8787, core: 'fake', coreReason: '', oldCore: false });
  t.same(
    workers.map(({ id }) => id),
    ['web-1', 'web-2', 'background-3'],
  );
});

t.test('a worker that ends three times before it is ready makes the start fail with its reason', async (t) => {
  const { supervisor, worker } = cluster(t, 1);
  const start = supervisor.start();
  for (const index of [0, 2, 3]) {
    const failing = await worker(index);
    await failing.got('start');
    await fail(failing, { reason: 'no such disk', exitCode: null });
  }
  await t.rejects(start, { name: 'StartError', exitCode: 1, message: 'A web worker cannot start: no such disk' });
  supervisor.kill();
});

t.test(
  'a server whose web workers serve starts without a background worker that cannot start, tells them, and tries it again',
  async (t) => {
    const { supervisor, worker } = cluster(t, 1);
    const start = supervisor.start();
    const web = await worker(0);
    web.ready();
    for (const index of [1, 2, 3]) {
      const failing = await worker(index);
      await failing.got('start');
      await fail(failing, { reason: 'the disk is read-only', exitCode: null });
    }
    t.match(await start, { port: 8787 });
    t.match(await web.got('background'), { data: { isFailing: true } });
    const late = await worker(4);
    web.received.length = 0;
    late.ready();
    t.match(await web.got('background'), { data: { isFailing: false } });
    supervisor.kill();
  },
);

t.test('a worker that fails for a permanent reason makes the start fail at once, with its exit code', async (t) => {
  const { supervisor, worker, workers, lines } = cluster(t, 1);
  const start = supervisor.start();
  const failing = await worker(0);
  await fail(failing, { reason: 'the core is broken', exitCode: 2 });
  await t.rejects(start, { name: 'StartError', exitCode: 2, message: 'the core is broken' });
  supervisor.kill();
  t.equal(workers.length, 2, 'none was started after it');
  t.strictSame(lines, [], 'and no line of the log says that one was');
});

t.test('a crashed worker is replaced by one with a new id, and is cleaned up after', async (t) => {
  const { workers, worker, started, lines } = cluster(t);
  await started();
  workers[0]?.exit(null, 'SIGSEGV');
  const background = await worker(2);
  t.same(await background.got('ended'), { type: 'ended', data: { owner: workers[0]?.owner } });
  const next = await worker(3);
  await next.got('start');
  t.equal(next.role, 'web');
  t.equal(next.id, 'web-4');
  t.match(
    lines.find(({ level }) => level === 'error'),
    { ended: 'web-1', signal: 'SIGSEGV', replacedInMs: 0 },
  );
});

t.test('workers that end while there is no background worker are cleaned up by the next one', async (t) => {
  const { workers, worker, started } = cluster(t);
  await started();
  workers[2]?.exit(1);
  workers[0]?.exit(1);
  const next = [await worker(3), await worker(4)].find(({ role }) => role === 'background');
  next?.ready();
  await next?.got('ended');
  await new Promise(setImmediate);
  const named = next?.received.flatMap((message) => (message.type === 'ended' ? [message.data.owner] : []));
  t.same(new Set(named), new Set([workers[0]?.owner, workers[2]?.owner]));
});

t.test('the owner of the entries of a worker in shared memory is that of no other server', async (t) => {
  const owners: string[] = [];
  for (const { workers, started } of [cluster(t), cluster(t)]) {
    await started();
    owners.push(...workers.map(({ owner }) => owner));
  }
  t.equal(new Set(owners).size, 6);
  for (const owner of owners) t.match(owner, /^[\x21-\x7e]+\/(web-[12]|background-3)\/\w{17}$/);
});

t.test('announcements are relayed between the workers that use the bus, also to those started later', async (t) => {
  const { workers, worker, started } = cluster(t);
  await started();
  workers[0]?.exit(1);
  const next = await worker(3);
  next.ready();
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  workers[1]?.channel.send({ type: 'announce', data: { streams: [['a', 12]] } });
  t.same(await next.got('announce'), { type: 'announce', data: { streams: [['a', 12]] } });
  t.notOk(
    workers[1]?.received.some(({ type }) => type === 'announce'),
    'not back to where it came from',
  );
  t.notOk(
    workers[2]?.received.some(({ type }) => type === 'announce'),
    'nor to a background worker that does not listen',
  );
});

t.test('a stop drains the web workers first, then the background worker', async (t) => {
  const { supervisor, workers, started } = cluster(t);
  await started();
  const [one, two, background] = workers;
  const stop = supervisor.stop();
  t.same(await one?.got('drain'), { type: 'drain', data: { reason: 'stop' } });
  await two?.got('drain');
  one?.exit(WorkerExit.intended);
  await new Promise(setImmediate);
  t.notOk(
    background?.received.some(({ type }) => type === 'drain'),
    'one web worker is still at it',
  );
  two?.exit(WorkerExit.intended);
  await background?.got('drain');
  background?.exit(WorkerExit.intended);
  await stop;
  t.equal(workers.length, 3, 'nobody was replaced');
});

t.test('a worker that does not end within the bound is killed', async (t) => {
  const { supervisor, workers, started, lines } = cluster(t, 1);
  await started();
  const [web, background] = workers;
  if (background !== undefined) endWhenTold(background);
  const startedAt = performance.now();
  await supervisor.stop();
  t.same(await web?.ended, { code: null, signal: 'SIGKILL' });
  t.ok(performance.now() - startedAt < 30_000);
  t.ok(lines.some(({ killed }) => killed === 'web-1'));
});

t.test(
  'a rolling restart replaces one worker after another, each new one serving before the old one drains',
  async (t) => {
    const { supervisor, workers, worker, started } = cluster(t);
    await started();
    const [one, two] = workers;
    const roll = supervisor.roll();
    const first = await worker(3);
    await first.got('start');
    t.notOk(
      one?.received.some(({ type }) => type === 'drain'),
      'the new one does not serve yet',
    );
    first.ready();
    t.same(await one?.got('drain'), { type: 'drain', data: { reason: 'roll' } });
    await new Promise(setImmediate);
    t.equal(workers.length, 4, 'the second waits for the first');
    one?.exit(WorkerExit.intended);
    const second = await worker(4);
    second.ready();
    await two?.got('drain');
    two?.exit(WorkerExit.intended);
    await roll;
    t.same([first.id, second.id], ['web-4', 'web-5']);
    t.same(Object.keys(supervisor.pids), ['background-3', 'web-4', 'web-5']);
  },
);

t.test('a rolling restart whose new worker cannot start leaves the old ones running', async (t) => {
  const { supervisor, workers, worker, started, lines } = cluster(t);
  await started();
  const roll = supervisor.roll();
  (await worker(3)).exit(1);
  await roll;
  t.equal(workers.length, 4);
  t.notOk(workers.some(({ received }) => received.some(({ type }) => type === 'drain')));
  t.ok(lines.some(({ level, reason }) => level === 'error' && reason === 'it exited with code 1'));
});

t.test('a rolling restart requested during another one repeats it once', async (t) => {
  const { supervisor, workers, worker, started } = cluster(t, 1);
  await started();
  if (workers[0] !== undefined) endWhenTold(workers[0]);
  const roll = supervisor.roll();
  void supervisor.roll();
  const first = await worker(2);
  endWhenTold(first);
  first.ready();
  const second = await worker(3);
  second.ready();
  await roll;
  t.same(Object.keys(supervisor.pids), ['background-2', 'web-4']);
});

t.test('a stop during a rolling restart ends old and new workers', async (t) => {
  const { supervisor, workers, worker, started } = cluster(t, 1);
  await started();
  const roll = supervisor.roll();
  const next = await worker(2);
  endWhenTold(...workers);
  await supervisor.stop();
  await roll;
  t.same(supervisor.pids, {});
  t.ok(next.received.some(({ type }) => type === 'drain'));
});
