import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { withBrowser } from '../lib/browser.ts';
import { type CaseResult, ceilingGoal, median, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { seedUsers } from '../lib/seed.ts';

const manyPages = 20;
const postsPerRound = 20;
/**
 * Between two comments, so that every page has painted one before the next is posted. The pages are left alone
 * meanwhile.
 */
const PAUSE_MS = 500;

/**
 * A comment posted by REST, from the start of its request to the frame that shows it in the open thread: with one page,
 * and with twenty.
 */
export async function paintCase(plan: Plan): Promise<CaseResult> {
  const one = newRow('POST to paint, one page, median', 'ms', 1);
  const many = newRow(`POST to paint, ${manyPages} pages, median of all`, 'ms', 1);
  const last = newRow(`POST to paint, the last of ${manyPages} pages, median`, 'ms', 1);
  await withBrowser(plan, async ({ collab, open, call }) => {
    await seedUsers(collab, manyPages + 1);
    /**
     * Posts comments to a thread that the pages show. Returns, for each one, the milliseconds until each page had
     * painted it.
     */
    const measure = async (pages: readonly Page[], threadId: string): Promise<number[][]> => {
      const posts = new Map<string, number>();
      for (const page of pages) await page.evaluate(`recordPaints('.popover .body')`);
      for (let i = 0; i < postsPerRound; i += 1) {
        const text = `comment ${i}`;
        await delay(PAUSE_MS);
        posts.set(text, performance.timeOrigin + performance.now());
        await call('POST', `/threads/${threadId}/comments`, { userId: 'user-0', body: text });
      }
      await delay(PAUSE_MS);
      const painted: Record<string, number>[] = [];
      for (const page of pages) painted.push(await page.evaluate<Record<string, number>>('recordedPaints()'));
      return [...posts].map(([text, begun]) =>
        painted.map((times) => {
          const time = times[text] ?? 0;
          if (time === 0) throw new Error(`a page did not paint "${text}" within ${PAUSE_MS} ms`);
          return time - begun;
        }),
      );
    };
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const count of [1, manyPages]) {
        // A thread of its own, so that no run shows more comments than another.
        const { thread } = await call<{ thread: { id: string } }>('POST', '/rooms/room-0/threads', {
          userId: 'user-0',
          body: 'Shall we?',
          position: { x: 0.5, y: 0.1 },
        });
        const pages: Page[] = [];
        // One after the other: together they would not open in time on few cores.
        for (let i = 1; i <= count; i += 1) pages.push(await open(`user-${i}`));
        for (const page of pages)
          await page.evaluate(
            `document.querySelector('collab-comments').openThread('${thread.id}'); painted('.popover .body')`,
          );
        const times = await measure(pages, thread.id);
        record(count === 1 ? one : many, 'collab', median(times.flat()));
        if (count > 1) record(last, 'collab', median(times.map((ofPost) => Math.max(...ofPost))));
        await Promise.all(pages.map((page) => page.close()));
        await call('DELETE', `/threads/${thread.id}`);
      }
    }
  });
  return {
    name: 'paint',
    title: 'comment by REST to the screen',
    rows: [one, many, last],
    goals: [ceilingGoal(one, 50), ceilingGoal(many, 100)],
  };
}
