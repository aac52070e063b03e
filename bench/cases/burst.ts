import { startBuilds, startOnNodeCore } from '../lib/collab.ts';
import { beforeGoal, type CaseResult, median, newRow, ratioGoal, record } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { ProcessorTimeRows } from '../lib/processor-time-rows.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import { getText, seedThreads, seedUsers } from '../lib/seed.ts';
import { type Sink, startSink } from '../lib/sink.ts';
import { openSockets } from '../lib/sockets.ts';
import type { Target } from '../lib/target.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';
import type { BurstResult } from '../loads/protocol.ts';

const sockets = 1000;
/** Events per burst; all are posted at once. */
const burstEvents = 256;
const burstsPerRound = 5;
const singlesPerRound = 15;

/**
 * Delivers events to 1 000 sockets: a burst of 256 posted at once, and a single one from its POST to the last socket.
 */
export async function burstCase(plan: Plan): Promise<CaseResult> {
  const builds = await startBuilds(plan);
  const targets: Target[] = [...builds];
  if (plan.before === null) targets.push(await startOnNodeCore(plan), await startBareUws(), await startFastify());
  const sinks = new Map<Target, Sink>();
  const perSecond = newRow('deliveries in a burst', '1/s', 0);
  const cost = new ProcessorTimeRows('delivery', 3);
  const last = newRow('one event, POST to the last of 1 000 sockets', 'ms', 2);

  const work = async (): Promise<void> => {
    const threads = new Map<Target, string>();
    for (const target of targets) {
      const ids = await threadsOf(target);
      threads.set(target, ids[0]!);
      // Compiles the code that creates comments, as in a server that has run for a minute.
      await runWrk('create', target, threadsFile(ids), plan.warmUpSeconds);
      const sink = startSink(target.name);
      sinks.set(target, sink);
      await openSockets(sink, target, sockets);
    }
    // The bare server publishes exactly the bytes of Collab's event.
    const collab = builds[0]!;
    const event = await sampleEvent(collab, threads.get(collab)!, sinks.get(collab)!);
    const fire = (target: Target, events: number): Promise<BurstResult> => {
      const request = target.eventRequest(threads.get(target)!, event);
      return checked(target, sinks.get(target)!.burst(target.server.port, Array<string>(events).fill(request)));
    };

    for (const target of targets) await fire(target, burstEvents);
    await interleave(plan.rounds, targets, async (target) => {
      await cost.measure(target, async () => {
        let delivered = 0;
        for (let i = 0; i < burstsPerRound; i += 1) {
          const { milliseconds, deliveries } = await fire(target, burstEvents);
          record(perSecond, target.name, (deliveries / milliseconds) * 1000);
          delivered += deliveries;
        }
        return delivered;
      });
      const singles: number[] = [];
      for (let i = 0; i < singlesPerRound; i += 1) singles.push((await fire(target, 1)).milliseconds);
      record(last, target.name, median(singles));
    });
  };
  try {
    await withTargets(targets, work);
  } finally {
    for (const sink of sinks.values()) await sink.end();
  }

  return {
    name: 'burst',
    title: `${burstEvents} events at once to 1 000 sockets`,
    rows: [...cost.rows, perSecond, last],
    goals:
      plan.before === null
        ? [ratioGoal(perSecond, 'bare uWS', 0.7)]
        : [beforeGoal(cost.total), beforeGoal(perSecond), beforeGoal(last)],
  };
}

/** Thread ids; the bare server accepts any. */
async function threadsOf(target: Target): Promise<string[]> {
  if (target.name === 'bare uWS') return ['none'];
  await seedUsers(target, 50);
  return seedThreads(target, 100, 1);
}

async function sampleEvent(target: Target, threadId: string, sink: Sink): Promise<string> {
  await checked(target, sink.burst(target.server.port, [target.eventRequest(threadId, '')]));
  const { items } = JSON.parse(await getText(target, '/api/v1/events?since=0&limit=1000')) as {
    items: { type: string }[];
  };
  const event = items.findLast((item) => item.type === 'comment.created');
  if (event === undefined) throw new Error('the log of events shows no comment.created');
  return JSON.stringify(event);
}

/** A burst is valid only if every socket received every event exactly once. */
async function checked(target: Target, burst: Promise<BurstResult>): Promise<BurstResult> {
  const result = await burst;
  if (result.incomplete > 0 || result.refused > 0) {
    const { incomplete, fewest, most, refused, milliseconds } = result;
    const after = `after ${(milliseconds / 1000).toFixed(1)} s`;
    throw new Error(
      `${target.name}: ${incomplete} sockets got ${fewest} to ${most} events instead of each once, ${refused} posts were refused, ${after}`,
    );
  }
  return result;
}
