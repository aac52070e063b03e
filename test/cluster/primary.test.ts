import t from 'tap';
import { channelPair, type ProcessChannel } from '../../src/cluster/channel.ts';
import { WorkerExit } from '../../src/cluster/exit.ts';
import { runPrimary } from '../../src/cluster/primary.ts';
import type { WorkerEnd } from '../../src/cluster/worker.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLogger } from '../../src/observability/log.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a server that is stopped while its workers start is not reported as ready', async (t) => {
  const dir = tempFolder(t);
  const lines: string[] = [];
  const workers: ProcessChannel[] = [];
  const primary = await runPrimary({
    config: { ...loadConfig({ dir, env: {}, flags: { port: '0', workers: '1' } }), dataDir: dir },
    prepare: () => Promise.resolve(),
    openLog: () =>
      Promise.resolve(
        createLogger({
          level: 'info',
          name: 'primary',
          destination: { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
        }),
      ),
    lockHolders: { find: () => [], kill: () => false },
    spawn: () => {
      const [near, far] = channelPair();
      workers.push(far);
      const ended = new Promise<WorkerEnd>((resolve) => {
        far.onMessage(({ type }) => {
          if (type === 'drain') resolve({ code: WorkerExit.intended, signal: null });
        });
      });
      return { pid: undefined, channel: near, ended, kill: () => {}, wake: () => {} };
    },
  });
  const stopped = primary.stop();
  for (const worker of workers)
    worker.send({ type: 'ready', data: { port: 8787, core: 'fake', coreReason: '', oldCore: false } });
  t.equal(await primary.ready, null);
  await stopped;
  t.equal(await primary.ended, 0);
  t.notOk(lines.includes('ready'), lines.join(', '));
});
