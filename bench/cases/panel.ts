import { withBrowser } from '../lib/browser.ts';
import { type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { seedUsers } from '../lib/seed.ts';

const threads = 500;
const commentsPerThread = 10;
/** Frames of one measurement of scrolling, and the pixels of a step. */
const frames = 240;
const step = 120;

/** Scrolls the list of the panel, a step in each frame. Resolves with the times between the frames, in milliseconds. */
const scroll = `new Promise((resolve) => {
  const list = document.querySelector('collab-comments').shadowRoot.querySelector('.panel .list');
  const times = [];
  let before = 0, direction = 1;
  const frame = (now) => {
    if (before !== 0) times.push(now - before);
    before = now;
    if (times.length === ${frames}) return resolve(times);
    if (list.scrollTop + list.clientHeight >= list.scrollHeight - 1) direction = -1;
    list.scrollBy(0, direction * ${step});
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})`;

/**
 * A room of 500 threads with 5 000 comments: from the last byte of its data to the painted panel, and how smoothly that
 * scrolls.
 */
export async function panelCase(plan: Plan): Promise<CaseResult> {
  const title = `${threads} threads with ${threads * commentsPerThread} comments`;
  const cold = newRow('data to first paint of pins, page just opened', 'ms', 0);
  const paint = newRow('data to first paint of pins and panel', 'ms', 0);
  const typical = newRow('scrolling, time of a frame, median', 'ms', 1);
  const slow = newRow('scrolling, time of a frame, 99 of 100', 'ms', 1);
  await withBrowser(plan, async (bench) => {
    await seedUsers(bench.collab, 50);
    await seed(bench.call);
    for (let round = 0; round < plan.rounds; round += 1) {
      const page = await bench.open('user-1');
      record(cold, 'collab', await page.evaluate<number>('firstPaint.then((time) => time - receivedAt)'));
      // Everything is loaded and compiled; the room comes again, with the panel open.
      const shown = await page.evaluate<number>(`(async () => {
        const element = document.querySelector('collab-comments');
        const { room } = element;
        await painted('.pin');
        element.togglePanel(true);
        await painted('.panel .item');
        element.room = '';
        await element.updateComplete;
        element.room = room;
        await element.updateComplete;
        element.togglePanel(true);
        await painted('.pin');
        return (await painted('.panel .item')) - receivedAt;
      })()`);
      record(paint, 'collab', shown);
      const times = (await page.evaluate<number[]>(scroll)).toSorted((a, b) => a - b);
      record(typical, 'collab', times[frames >> 1]!);
      record(slow, 'collab', times[Math.floor(frames * 0.99)]!);
      await page.close();
    }
  });
  return {
    name: 'panel',
    title,
    rows: [cold, paint, typical, slow],
    goals: [ceilingGoal(cold, 300), ceilingGoal(paint, 300), ceilingGoal(typical, 17), ceilingGoal(slow, 34)],
  };
}

async function seed(
  call: (method: string, path: string, body: object) => Promise<{ thread: { id: string } }>,
): Promise<void> {
  for (let at = 0; at < threads; at += 20) {
    const client = async (n: number): Promise<void> => {
      const userId = `user-${n % 50}`;
      const body = `${n}. Could we move this button a little to the left? It hides the total when the window is narrow.`;
      const position = { x: (n % 25) / 25, y: Math.floor(n / 25) / 20 };
      const { thread } = await call('POST', '/rooms/room-0/threads', { userId, body, position });
      for (let reply = 1; reply < commentsPerThread; reply += 1)
        await call('POST', `/threads/${thread.id}/comments`, {
          userId: `user-${(n + reply) % 50}`,
          body: `${reply}. I agree, **please** do.`,
        });
    };
    await Promise.all(Array.from({ length: 20 }, (_, n) => client(at + n)));
  }
}
