import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { findEnvironment } from '../../domain/environments/environments.ts';
import { redactErasedUsers } from '../../domain/users/erasure.ts';
import { streamOf } from '../../domain/events/streams.ts';
import type { Environment } from '../../model/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Store } from '../../ports/store.ts';
import { addCommand, wholeOption } from '../command.ts';
import { invocation, withStore } from '../shared/folder.ts';
import { Interrupted } from '../terminal/interruption.ts';
import { note, print, printable } from '../terminal/output.ts';

const LOOK_AGAIN_MS = 100;
const BATCH = 500;
const SHOWN_TEXT = 80;

/** Adds `tail`. */
export function register(program: Command): void {
  addCommand(program, 'tail', {
    summary: 'Follow the events of an environment as they happen.',
    details: 'Shows what is committed from now on, or after a position; ends with Ctrl-C. With --json each event is one line.',
    examples: ['collab tail --env default', 'collab tail --env default --since 0', 'collab tail --env default --json | jq .type'],
  })
    .requiredOption('--env <slug>', 'Environment to follow.')
    .option('--since <n>', 'Position (seq) to start after; 0 is the beginning (default: now).')
    .action(tail);
}

async function tail({ env, since }: { env: string; since?: string }, command: Command): Promise<void> {
  const at = invocation(command);
  const from = since === undefined ? undefined : wholeOption('since', since, 0, Number.MAX_SAFE_INTEGER);
  const stop = closedOutput();
  const work = withStore(at, async (ctx) => {
    const { store } = ctx;
    const environment = await findEnvironment(ctx, env);
    const stream = streamOf(environment);
    const start = from ?? (await store.lastSeq(stream));
    await warnOfGap(store, stream, start);
    note(`Following the events of ${env} after position ${start}. Ctrl-C ends.`);
    await follow(store, environment, start, stop, (text) => print(at.json ? text : line(JSON.parse(text) as EventEnvelope)));
  });
  // A signal is the way to end this command, and no failure.
  await work.catch((error: unknown) => {
    if (!(error instanceof Interrupted)) throw error;
  });
}

async function warnOfGap(store: Store, stream: string, since: number): Promise<void> {
  const oldest = await store.oldestSeq(stream);
  if (since + 1 < oldest) note(`The events before position ${oldest} are no longer kept: the first ${oldest - since - 1} are missing.`);
}

/** Hands over each event after `since` once and in order, until `stop`. Other processes write, so it looks again and again. */
async function follow(store: Store, environment: Environment, since: number, stop: AbortSignal, show: (text: string) => void): Promise<void> {
  let position = since;
  while (!stop.aborted) {
    const events = await redactErasedUsers(store, environment.id, await store.events(streamOf(environment), position, BATCH));
    // Printing waits for the reader of a pipe.
    store.releaseSnapshot();
    for (const { seq, text } of events) {
      show(text);
      position = seq;
    }
    if (events.length === 0) await delay(LOOK_AGAIN_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Aborted once standard output is closed. */
function closedOutput(): AbortSignal {
  const controller = new AbortController();
  process.stdout.once('error', () => controller.abort());
  return controller.signal;
}

function line({ seq, at, type, roomId, threadId, actor, data }: EventEnvelope): string {
  const where = [roomId !== undefined && `in ${roomId}`, threadId].filter(Boolean).join(' ');
  const said = textOf(data);
  return printable([at, `#${seq}`, type, where, `by ${actor.userId ?? 'backend'} (${actor.via})`, said].filter(Boolean).join('  '));
}

/** The body of the comment in an event's data, shortened; empty when there is none. */
function textOf(data: unknown): string {
  const { comment } = (data ?? {}) as { comment?: { body?: unknown } };
  if (typeof comment?.body !== 'string') return '';
  return JSON.stringify(comment.body.length > SHOWN_TEXT ? `${comment.body.slice(0, SHOWN_TEXT - 1)}…` : comment.body);
}
