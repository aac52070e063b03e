import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import type { Logger } from '../log.ts';
import { Sweeper } from '../pipeline/sweeper.ts';
import { storeSweeps } from '../pipeline/sweeps.ts';
import type { Channel } from './channel.ts';
import type { Step } from './lifecycle.ts';

export interface BackgroundWorkerOptions {
  readonly config: Config;
  readonly ctx: Context;
  readonly channel: Channel;
  readonly log: Logger;
}

/** A worker that does what may be slow. */
export interface BackgroundWorker {
  /** The steps by which it ends with its work done or put down safely. */
  drain(): readonly Step[];
}

/** Sweeps, and cleans up after processes that the primary says have ended. */
export function runBackgroundWorker({ config, ctx, channel, log }: BackgroundWorkerOptions): BackgroundWorker {
  const sweeper = new Sweeper(storeSweeps(ctx, config), { clock: ctx.clock, log });
  const stopCleaning = channel.onMessage((message) => {
    if (message.type === 'ended') void cleanUp(message.data.workerId);
  });
  sweeper.start();

  async function cleanUp(workerId: string): Promise<void> {
    try {
      ctx.shared.dropOwner(workerId);
      await ctx.store.maintain();
      channel.send({ type: 'cleaned', data: { workerId } });
    } catch (error) {
      log.error({ err: error, ended: workerId }, 'could not clean up after a worker');
    }
  }

  return {
    drain: () => [
      {
        name: 'finish the sweeps that run',
        withinMs: config.shutdown.drainSeconds * 1_000,
        run: async () => {
          stopCleaning();
          await sweeper.stop();
        },
      },
    ],
  };
}
