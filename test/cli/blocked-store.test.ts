import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readCommandLine } from '../../src/lib/process/process-info.ts';
import { collab, startCollab } from '../helpers/cli.ts';
import { until } from '../helpers/cluster.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('status and doctor name the process that keeps a lock of the store', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  const folder = join(dir, 'data', 'store', 'log');
  const holder = startFixture('opening-holder', folder, 'exclusive');
  t.teardown(() => killLines(holder));
  await until(() => holder.lines.includes('held'));
  const finding = new RegExp(
    `process ${holder.child.pid} \\(opening-holder.*\\) has kept its lock ${join(folder, 'opening', 'lock.mdb')}`,
  );
  const [status, doctor] = await Promise.all([collab(['status', '--dir', dir]), collab(['doctor', '--dir', dir])]);
  t.match(status, { code: 1, stdout: '', stderr: finding });
  t.match(doctor, { code: 1, stdout: finding });
  t.match(`${status.stderr} ${doctor.stdout}`, new RegExp(`or end it: kill -KILL ${holder.child.pid}`));
  const interrupted = startCollab(t, ['doctor', '--dir', dir]);
  // It is waiting for the store then.
  const { pid } = interrupted.process;
  const children = (): string[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .split(' ')
      .filter((child) => child !== '');
  await until(() => children().some((child) => /\0env\0list\0/.test(readCommandLine(Number(child)))));
  // Null if the signal came before its handler.
  t.ok([143, null].includes(await interrupted.end('SIGTERM')), 'it reacts to a signal meanwhile');
  t.notMatch(`${status.stderr} ${doctor.stdout}`, /restore/, 'nothing is damaged');
});
