import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { api, field, openDemo, pin, popover } from '../helpers/widget-page.ts';

t.test('what is unread', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const browser = await openBrowser(t);
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
  const bob = await openDemo(t, context, cluster, 'bob');
  const badge = bob.locator('collab-comments .badge');
  const unreadPin = bob.locator('collab-comments .pin[aria-label^="Unread"]');
  const frames: string[] = [];
  bob.on('websocket', (socket) => socket.on('framesent', ({ payload }) => frames.push(String(payload))));
  await bob.reload();
  const { thread } = (await (
    await api(cluster, 'POST', '/rooms/demo/threads', {
      userId: 'ci-bot',
      body: 'Ask @Bob',
      position: { x: 0.4, y: 0.3 },
      mentions: ['bob'],
    })
  ).json()) as { thread: { id: string } };
  const mention = (body: string): Promise<Response> =>
    api(cluster, 'POST', `/threads/${thread.id}/comments`, { userId: 'ci-bot', body, mentions: ['bob'] });
  const unreadOnServer = async (): Promise<number> => {
    const answer = (await (await api(cluster, 'GET', '/users/bob/notifications')).json()) as { unreadCount: number };
    return answer.unreadCount;
  };

  await t.test('a mention in a closed thread is counted until the thread is opened', async () => {
    await until(async () => (await unreadOnServer()) === 1);
    await badge.getByText('1', { exact: true }).waitFor();
    await unreadPin.waitFor();
    await pin(bob, 'Ask').click();
    await badge.waitFor({ state: 'detached' });
    await until(async () => (await unreadOnServer()) === 0);
    await unreadPin.waitFor({ state: 'detached' });
  });

  await t.test('mentions in the open thread are read as they arrive, with one request each at most', async (t) => {
    frames.length = 0;
    const marks = (): number => frames.filter((frame) => frame.includes('notifications.read')).length;
    for (const [index, body] of ['First', 'Second', 'Third'].entries()) {
      await mention(body);
      await popover(bob).getByText(body).waitFor();
      await until(() => marks() > index);
      await until(async () => (await unreadOnServer()) === 0);
      await badge.waitFor({ state: 'detached' });
      await unreadPin.waitFor({ state: 'detached' });
    }
    t.equal(marks(), 3);
  });

  await t.test('in a hidden page the open thread becomes unread, until the page is shown again', async (t) => {
    const show = (state: string): Promise<unknown> =>
      bob.evaluate(
        `Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await show('hidden');
    await mention('While away');
    await badge.getByText('1', { exact: true }).waitFor();
    await until(async () => (await unreadOnServer()) === 1);
    await show('visible');
    await badge.waitFor({ state: 'detached' });
    await until(async () => (await unreadOnServer()) === 0);
    t.equal(await field(bob).count(), 1, 'it is still open');
  });
});
