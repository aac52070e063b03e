import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { readEvents } from '../../../domain/events/read-events.ts';
import { streamOf } from '../../../domain/events/streams.ts';
import { printable } from '../../../lib/printable.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import { CollabError } from '../../../model/errors.ts';
import type { EventEnvelope } from '../../../model/event.ts';
import type { Store } from '../../../ports/store.ts';
import { addCommand } from '../../command.ts';
import { integerOption } from '../../option-values.ts';
import { withServerUrls } from '../../shared/file-urls.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { InterruptedError } from '../../terminal/interruption.ts';
import { printNote, print } from '../../terminal/output.ts';

const POLL_MS = 100;
const BATCH = 500;
const SHOWN_LENGTH = 80;

/** Adds `tail`. */
export function register(program: Command): void {
  addCommand(program, 'tail', {
    summary: 'Follow the events of an environment.',
    details:
      'Shows the events from now on, or after a position, until Ctrl-C or until the environment is deleted; ' +
      'both exit with 0. With --json each event is one line.',
    examples: [
      'collab tail --env default',
      'collab tail --env default --since 0',
      'collab tail --env default --json | jq .type',
    ],
  })
    .requiredOption('--env <slug>', 'Environment to follow.')
    .option('--since <n>', 'Position (seq) to start after; 0 for the beginning (default: the last event).')
    .action(tail);
}

async function tail({ env, since }: { env: string; since?: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const from = since === undefined ? undefined : integerOption('since', since, 0, Number.MAX_SAFE_INTEGER);
  const stop = closedOutput();
  const work = withStore(at, async (ctx, config) => {
    const { store } = ctx;
    const environment = await findEnvironment(ctx, env);
    const stream = streamOf(environment);
    const start = from ?? (await store.lastSeq(stream));
    await warnOfGap(store, stream, start);
    printNote(`Following the events of ${env} after position ${start}. Press Ctrl-C to stop.`);
    const deleted = await follow(ctx, environment, start, stop, (text) =>
      print(at.json ? withServerUrls(text, () => config) : line(JSON.parse(text) as EventEnvelope)),
    );
    if (deleted) printNote(`The environment ${env} was deleted, so there are no more events to follow.`);
  });
  // A signal is the normal way to end this command.
  await work.catch((error: unknown) => {
    if (!(error instanceof InterruptedError)) throw error;
  });
}

async function warnOfGap(store: Store, stream: string, since: number): Promise<void> {
  const oldest = await store.oldestSeq(stream);
  if (since + 1 < oldest)
    printNote(
      `The events before position ${oldest} are no longer stored: the first ${oldest - since - 1} are missing.`,
    );
}

/**
 * Shows each event after `since` once and in order, until `stop` or until the environment is deleted. Polls, because
 * other processes write the events.
 *
 * @returns whether the environment was deleted
 */
async function follow(
  ctx: Context,
  environment: Environment,
  since: number,
  stop: AbortSignal,
  show: (text: string) => void,
): Promise<boolean> {
  const { store } = ctx;
  let position = since;
  while (!stop.aborted) {
    const events = await readEvents(store, environment, position, { limit: BATCH });
    const deleted = events.length === 0 && (await isDeleted(ctx, environment));
    // Printing may wait for the reader of a pipe, and must not keep a snapshot open meanwhile.
    ctx.operations?.releaseSnapshot();
    if (deleted) return true;
    for (const { seq, text } of events) {
      show(text);
      position = seq;
    }
    if (events.length === 0) await delay(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
  }
  return false;
}

/**
 * Whether the environment no longer exists with this stream. It has another one if it was deleted and imported again.
 */
async function isDeleted(ctx: Context, environment: Environment): Promise<boolean> {
  try {
    return streamOf(await findEnvironment(ctx, environment.id)) !== streamOf(environment);
  } catch (error) {
    if (error instanceof CollabError && error.code === 'environment_not_found') return true;
    throw error;
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
  const body = bodyOf(data);
  return printable(
    [at, `#${seq}`, type, where, `by ${actor.userId ?? 'backend'} (${actor.via})`, body].filter(Boolean).join('  '),
  );
}

/** The shortened body of the comment in an event's data, or of the first one of a new thread; '' if there is none. */
function bodyOf(data: unknown): string {
  const { comment, body = comment?.body } = (data ?? {}) as { comment?: { body?: unknown }; body?: unknown };
  if (typeof body !== 'string') return '';
  return JSON.stringify(body.length > SHOWN_LENGTH ? `${body.slice(0, SHOWN_LENGTH - 1)}…` : body);
}
