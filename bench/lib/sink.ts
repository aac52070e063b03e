import { type ChildProcess, spawn } from 'node:child_process';
import { loadCore } from './cores.ts';
import { built } from './build.ts';
import type { BurstResult, SinkAnswer, SinkCommand } from '../loads/protocol.ts';

/** The sink of one target, in a separate process on the load's core. */
export interface Sink {
  /**
   * Opens one socket per entry of `headers`. Returns the number of failed attempts; throws if a socket fails three
   * times.
   */
  open(command: Omit<SinkCommand & { do: 'open' }, 'do'>): Promise<number>;
  /** Sends all requests at once and waits for the events on every socket. */
  burst(port: number, requests: readonly string[]): Promise<BurstResult>;
  /** Closes the sockets. */
  close(): Promise<void>;
  /** Ends the process. */
  end(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a sink without sockets; `name` identifies the target in errors. It ends with the harness at the latest. */
export function startSink(name: string): Sink {
  const child = spawn('taskset', ['-c', String(loadCore), process.execPath, built('sink')], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  running.add(child);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  void exited.then(() => running.delete(child));

  const ask = (command: SinkCommand): Promise<SinkAnswer> =>
    new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`${name}: the sink ended`));
      child.once('exit', onExit);
      child.once('message', (answer) => {
        child.off('exit', onExit);
        const typed = answer as SinkAnswer;
        if (typed.done === 'failed') reject(new Error(`${name}: ${typed.reason}`));
        else resolve(typed);
      });
      child.send(command);
    });

  return {
    open: async (command) => {
      const answer = await ask({ do: 'open', ...command });
      return answer.done === 'open' ? answer.lost : 0;
    },
    burst: async (port, requests) => {
      const answer = await ask({ do: 'burst', port, requests });
      if (answer.done !== 'burst') throw new Error(`the sink answered ${answer.done}`);
      return answer;
    },
    close: async () => {
      await ask({ do: 'close' });
    },
    end: async () => {
      child.disconnect();
      await exited;
    },
  };
}
