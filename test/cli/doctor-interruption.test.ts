import t from 'tap';
import { checkDeep } from '../../src/cli/doctor/check-deep.ts';
import { checkFilesOf } from '../../src/cli/doctor/check-files.ts';
import { checkQuotas } from '../../src/cli/doctor/check-quotas.ts';
import { loadConfig } from '../../src/config/load.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('Ctrl-C ends the checks of doctor, and is not reported as a failed check', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  const subject = { dir, config: loadConfig({ dir, env: {}, flags: {} }) };
  // An interrupted command exits a second later.
  t.intercept(process, 'exit', { value: () => undefined });
  for (const check of [checkFilesOf, checkDeep, checkQuotas]) {
    // The check has opened the store when it starts to listen for signals.
    const interrupt = (event: string | symbol, listener: (signal: string) => void): void => {
      if (event !== 'SIGINT') return;
      // The next one is for a second signal.
      process.off('newListener', interrupt);
      queueMicrotask(() => listener('SIGINT'));
    };
    process.on('newListener', interrupt);
    await t.rejects((): Promise<unknown> => check(subject), { name: 'InterruptedError', exitCode: 130 });
  }
});
