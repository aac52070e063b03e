import { type Collab, installCollab, startCollab } from '../lib/collab.ts';
import { type CaseResult, ceilingGoal, median, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { addWebhook, configurePlugins, type Receiver, startReceiver } from '../lib/plugins.ts';
import { untilIdle, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';

const perSecond = 200;
const threads = 100;
/** The time that the last deliveries may take. */
const patienceMs = 30_000;

/** Creates 200 comments per second in 100 threads, and measures from the 201 to the arrival of the webhook. */
export async function webhooksCase(plan: Plan): Promise<CaseResult> {
  const p50 = newRow(`webhook after its commit, median, ${perSecond} events/s`, 'ms', 1);
  const p99 = newRow('webhook after its commit, 99 of 100', 'ms', 1);
  const receiver = await startReceiver();
  const installation = installCollab(plan.bin);
  configurePlugins(installation, [{ use: 'webhook', allowPrivate: true }]);
  const collab = await startCollab(installation);
  try {
    await withTargets([collab], async () => {
      await seedUsers(collab, 50);
      const ids = await seedThreads(collab, threads, 1);
      addWebhook(installation, receiver.url, 'comment.created');
      await delaysOf(collab, ids, receiver, plan.warmUpSeconds);
      for (let round = 0; round < plan.rounds; round += 1) {
        await untilIdle([collab]);
        const delays = await delaysOf(collab, ids, receiver, plan.seconds);
        record(p50, collab.name, median(delays));
        record(p99, collab.name, delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.99)]!);
      }
    });
  } finally {
    receiver.close();
  }
  return { name: 'webhooks', title: 'webhooks of new comments', rows: [p50, p99], goals: [ceilingGoal(p50, 100)] };
}

/**
 * Creates comments at the rate, and returns the delays in milliseconds of their webhooks, each of which must arrive.
 */
async function delaysOf(
  collab: Collab,
  ids: readonly string[],
  { arrivals }: Receiver,
  seconds: number,
): Promise<number[]> {
  const answers = new Map<string, number>();
  const posts: Promise<void>[] = [];
  const begun = performance.now();
  for (let i = 0; i < seconds * perSecond; i += 1) {
    const wait = begun + (i * 1000) / perSecond - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    posts.push(post(collab, ids[i % ids.length]!).then((id) => void answers.set(id, performance.now())));
  }
  await Promise.all(posts);
  const giveUp = performance.now() + patienceMs;
  while (![...answers.keys()].every((id) => arrivals.has(id))) {
    if (performance.now() > giveUp) throw new Error('not every comment was delivered');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return [...answers].map(([id, answered]) => Math.max(0, arrivals.get(id)! - answered));
}

async function post({ server, authorization }: Collab, threadId: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${server.port}/api/v1/threads/${threadId}/comments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify({ userId: 'user-1', body: 'Could we move this button a little to the left?' }),
  });
  if (answer.status !== 201) throw new Error(`a comment was answered with ${answer.status}`);
  return ((await answer.json()) as { comment: { id: string } }).comment.id;
}
