import { fileURLToPath } from 'node:url';
import t from 'tap';
import { until } from '../helpers/cluster.ts';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';
import { startReceiver } from '../helpers/receiver.ts';

interface Body {
  readonly type: string;
  readonly data: { readonly userId: string; readonly inApp: boolean };
}

t.test('a filter keeps a notification out of one channel, the inbox too, and the others deliver it', async (t) => {
  const hook = await startReceiver(t);
  const { call, run, thread } = await startPluginCluster(t, [
    { use: fileURLToPath(new URL('../fixtures/plugins/quiet.mjs', import.meta.url)) },
    { use: 'webhook', allowPrivate: true },
  ]);
  const { id: endpoint } = await run<{ id: string }>('webhook', 'add', '--url', hook.url);
  const id = await thread('Hello');
  for (const mentions of [['bob', 'cem'], ['dan']])
    await call('POST', `/threads/${id}/comments`, { userId: 'ann', body: 'Hi', mentions });
  const sent = (): string[] =>
    hook.received
      .map(({ body }) => JSON.parse(String(body)) as Body)
      .flatMap(({ type, data }) => (type === 'notification.created' ? [`${data.userId} ${data.inApp}`] : []));
  await until(() => sent().length === 2);
  t.strictSame(sent().toSorted(), ['bob false', 'dan true']);
  const unread = async (user: string): Promise<unknown> =>
    (await call('GET', `/users/${user}/notifications`)).body['unreadCount'];
  t.strictSame(await Promise.all(['bob', 'cem', 'dan'].map(unread)), [0, 1, 1]);
  await run('webhook', 'replay', endpoint, '--from', '1');
  await until(() => sent().length === 4);
  t.strictSame(
    sent().toSorted(),
    ['bob false', 'bob false', 'dan true', 'dan true'],
    'a replay from the command line runs the filter too',
  );
});
