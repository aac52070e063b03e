import { withBrowser } from '../lib/browser.ts';
import { type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { seedUsers } from '../lib/seed.ts';

/**
 * Connections of the SDK in a browser that are cut one after the other, with a comment posted meanwhile; none may be
 * missing in the end.
 */
export async function reconnectsCase(plan: Plan): Promise<CaseResult> {
  const time = newRow('reconnect, with all that was missed', 'ms', 1);
  const missing = newRow(`comments missing or doubled after ${plan.reconnects} reconnects`, '', 0);
  await withBrowser(plan, async ({ collab, open, sdk, call }) => {
    await seedUsers(collab, 2);
    const { thread } = await call<{ thread: { id: string } }>('POST', '/rooms/bench/threads', {
      userId: 'user-0',
      body: '0',
    });
    const page = await open('user-1');
    await page.evaluate(`(async () => {
      const { CollabSession } = await import('${sdk.url}/sdk/collab.js');
      document.querySelector('collab-comments').remove();
      window.session = new CollabSession({ serverUrl: '${sdk.url}', publishableKey: '${sdk.publishableKey}', token: () => '${sdk.token('user-1')}', backoff: { firstMs: 1, maxMs: 3 } });
      window.room = session.room('bench');
      room.subscribe(() => {});
      await room.ready();
      window.until = (check) => new Promise((resolve) => {
        const stops = [session.subscribe(() => look()), room.subscribe(() => look())];
        const look = () => { if (check()) { for (const stop of stops) stop(); resolve(); } };
        look();
      });
    })()`);
    for (let n = 1; n <= plan.reconnects; n += 1) {
      const cut = page.evaluate<number>(`(async () => {
        const { connectionId } = session.getSnapshot();
        for (const socket of sockets) socket.close(4000);
        await until(() => session.getSnapshot().connectionId !== connectionId && session.getSnapshot().status === 'live');
        const begun = performance.now();
        await until(() => room.getSnapshot().threads[0].commentCount >= ${n + 1});
        return performance.now() - begun;
      })()`);
      await call('POST', `/threads/${thread.id}/comments`, { userId: 'user-0', body: String(n) });
      record(time, 'collab', await cut);
    }
    const bodies = await page.evaluate<string[]>('room.getSnapshot().threads[0].comments.map(({ body }) => body)');
    const different = new Set(bodies);
    record(missing, 'collab', plan.reconnects + 1 - different.size + (bodies.length - different.size));
  });
  return { name: 'reconnects', title: 'reconnects in a row', rows: [time, missing], goals: [ceilingGoal(missing, 1)] };
}
