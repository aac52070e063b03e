import { setTimeout as delay } from 'node:timers/promises';
import {
  type HttpResponse,
  type JobContext,
  Permanent,
  type Job,
  type PluginEnvironment,
  type PluginHost,
  RetryAfter,
} from '../../src/plugins/api.ts';
import { commentLink } from '../shared/comment-link.ts';
import { displayName } from '../shared/comment-text.ts';
import { type Config, keyOf } from './config.ts';
import { discordMessage, type Post, slackMessage } from './message.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Waits before the second to sixth attempt. */
export const RETRY_DELAYS_MS: readonly number[] = [10 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR];
/**
 * How long one attempt waits for a target that takes no more messages for now, and the shortest wait before it asks
 * again.
 */
const MAX_WAIT_MS = 10 * SECOND;
const MIN_WAIT_MS = SECOND;

/** The payload of a job: the comment to post, and the target. */
export interface PostJob {
  readonly target: string;
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
  readonly startsThread: boolean;
}

/** Answers that no further attempt changes: the URL or the payload is wrong, or the channel is gone. */
const FINAL = [400, 401, 403, 404, 405, 410];

/**
 * Posts a comment to a target. Resolves without a post if the comment was deleted, or the target removed from the
 * configuration.
 *
 * @throws Permanent if the target refuses it finally
 * @throws RetryAfter if the target asks for a longer wait than planned
 * @throws Error otherwise: the queue tries again
 */
export async function post(
  host: PluginHost<Config>,
  { payload }: Job,
  { config, attempt }: JobContext<Config>,
  environment: PluginEnvironment,
): Promise<void> {
  const job = payload as unknown as PostJob;
  const target = config.targets.find((candidate) => keyOf(candidate) === job.target);
  const comment = await host.data.comment(environment, job.commentId);
  if (target === undefined || comment === undefined) return;

  const author = await displayName(host.data, environment, comment.userId);
  const message: Post = {
    author,
    startsThread: job.startsThread,
    roomId: job.roomId,
    body: comment.body,
    link: commentLink(config.linkTemplate, job),
  };
  const body = JSON.stringify(target.format === 'discord' ? discordMessage(message) : slackMessage(message));
  const answer = await send(host, target.url, body);
  if (answer.status >= 200 && answer.status < 300) return;

  // The URL is a secret, so the log has its host alone.
  const said = new TextDecoder().decode(answer.body.subarray(0, 200)).trim();
  const reason = `${new URL(target.url).host} answered ${answer.status}${said === '' ? '' : `: ${said}`}`;
  if (FINAL.includes(answer.status)) {
    host.log.error(
      { environment: environment.slug, comment: job.commentId, reason },
      'a message was refused; check the URL of the incoming webhook',
    );
    throw new Permanent(reason);
  }
  const planned = RETRY_DELAYS_MS[attempt - 1];
  if (planned === undefined)
    host.log.error(
      { environment: environment.slug, comment: job.commentId, reason },
      'a message was not posted after its last attempt',
    );
  throw answer.retryAfterMs !== null && planned !== undefined && answer.retryAfterMs > planned
    ? new RetryAfter(reason, answer.retryAfterMs)
    : new Error(reason);
}

/** Sends a message, again while the target asks for short waits, and returns the last answer. */
async function send({ http }: PluginHost<Config>, url: string, body: string): Promise<HttpResponse> {
  for (let waited = 0; ;) {
    const answer = await http.request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    if (answer.status !== 429 || answer.retryAfterMs === null) return answer;
    const wait = Math.max(MIN_WAIT_MS, answer.retryAfterMs);
    waited += wait;
    if (waited > MAX_WAIT_MS) return answer;
    await delay(wait);
  }
}
