import type { Page } from 'playwright-core';
import { withBrowser } from '../lib/browser.ts';
import { type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { seedUsers } from '../lib/seed.ts';

const threads = 50;
const clients = 8;

/**
 * The JavaScript heap of a page with the widget, its panel and a thread open, before and after thousands of events that
 * leave as much content as there was: edits of comments, and threads that are resolved and opened again.
 */
export async function growthCase(plan: Plan): Promise<CaseResult> {
  const before = newRow('heap of the page', 'MB', 2);
  const growth = newRow(`growth over ${plan.events} events`, 'MB', 2);
  await withBrowser(plan, async ({ collab, open, call }) => {
    await seedUsers(collab, 2);
    const made = await Promise.all(
      Array.from({ length: threads }, (_, n) =>
        call<Made>('POST', '/rooms/room-0/threads', {
          userId: 'user-0',
          body: `${n}`,
          position: { x: (n % 10) / 10, y: n / threads },
        }),
      ),
    );
    const page = await open('user-1');
    await page.evaluate(
      `document.querySelector('collab-comments').togglePanel(true); document.querySelector('collab-comments').openThread('${made[0]!.thread.id}'); painted('.popover .body')`,
    );
    let sent = 0;
    const send = async (count: number): Promise<void> => {
      const end = sent + count;
      const client = async (): Promise<void> => {
        while (sent < end) {
          const n = (sent += 1);
          const { thread } = made[n % threads]!;
          if (n % 4 === 0) await call('PATCH', `/threads/${thread.id}`, { resolved: n % 8 === 0, userId: 'user-0' });
          else
            await call('PATCH', `/comments/${thread.comments[0].id}`, { body: `Edited ${String(n).padStart(6, '0')}` });
        }
      };
      await Promise.all(Array.from({ length: clients }, client));
      await call('PATCH', `/comments/${made[0]!.thread.comments[0].id}`, { body: `All of ${end}` });
      await page.evaluate(`painted('.popover .body', 'All of ${end}')`);
    };
    // Compiles code and fills caches, as in a page that has been open for a while.
    await send(plan.events / 10);
    const begun = await heapMegabytes(page);
    await send(plan.events);
    record(before, 'collab', begun);
    record(growth, 'collab', (await heapMegabytes(page)) - begun);
  });
  return { name: 'growth', title: 'memory of a page', rows: [before, growth], goals: [ceilingGoal(growth, 1)] };
}

interface Made {
  readonly thread: { readonly id: string; readonly comments: readonly [{ readonly id: string }] };
}

/** The used JavaScript heap of a page after a full collection of garbage. */
async function heapMegabytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 1e6;
}
