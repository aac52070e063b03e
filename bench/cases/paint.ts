import type { Page } from 'playwright-core';
import { withBrowser } from '../lib/browser.ts';
import { type CaseResult, ceilingGoal, median, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { seedUsers } from '../lib/seed.ts';

const manyPages = 20;
const postsPerRound = 20;

/**
 * A comment posted by REST, from the start of its request to the frame that shows it in the open thread: with one page, and on
 * the last of twenty.
 */
export async function paintCase(plan: Plan): Promise<CaseResult> {
  const one = newRow('POST to paint, one page, median', 'ms', 1);
  const many = newRow(`POST to paint on the last of ${manyPages} pages, median`, 'ms', 1);
  await withBrowser(plan, async ({ collab, open, call }) => {
    await seedUsers(collab, manyPages + 1);
    let n = 0;
    const measure = async (pages: readonly Page[], threadId: string): Promise<number> => {
      const times: number[] = [];
      for (let i = 0; i < postsPerRound; i += 1) {
        const text = `comment ${(n += 1)}.`;
        const shown = pages.map((page) => page.evaluate<number>(`painted('.popover .body', '${text}').then((time) => performance.timeOrigin + time)`));
        const begun = performance.timeOrigin + performance.now();
        await call('POST', `/threads/${threadId}/comments`, { userId: 'user-0', body: text });
        times.push(Math.max(...(await Promise.all(shown))) - begun);
      }
      return median(times);
    };
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const [row, count] of [[one, 1], [many, manyPages]] as const) {
        // A thread of its own, so that no run shows more comments than another.
        const { thread } = await call<{ thread: { id: string } }>('POST', '/rooms/room-0/threads', { userId: 'user-0', body: 'Shall we?', position: { x: 0.5, y: 0.1 } });
        const pages: Page[] = [];
        // One after the other: together they would not open in time on one core.
        for (let i = 1; i <= count; i += 1) pages.push(await open(`user-${i}`));
        for (const page of pages) await page.evaluate(`document.querySelector('collab-comments').openThread('${thread.id}'); painted('.popover .body')`);
        record(row, 'collab', await measure(pages, thread.id));
        await Promise.all(pages.map((page) => page.close()));
        await call('DELETE', `/threads/${thread.id}`);
      }
    }
  });
  return { name: 'paint', title: 'comment by REST to the screen', rows: [one, many], goals: [ceilingGoal(one, 50), ceilingGoal(many, 100)] };
}
