import { type JobContext, Permanent, type Job, type PluginEnvironment, type PluginHost, RetryAfter } from '../../src/plugins/api.ts';
import { commentLink } from '../shared/comment-link.ts';
import { displayName } from '../shared/comment-text.ts';
import { type Config, keyOf } from './config.ts';
import { discordMessage, type Post, slackMessage } from './message.ts';

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
 * Posts a comment to a target. Resolves without a post if the comment was deleted, or the target removed from the configuration.
 *
 * @throws Permanent if the target refuses it finally
 * @throws RetryAfter if the target asks to wait
 */
export async function post(host: PluginHost<Config>, { payload }: Job, { config }: JobContext<Config>, environment: PluginEnvironment): Promise<void> {
  const job = payload as unknown as PostJob;
  const target = config.targets.find((candidate) => keyOf(candidate) === job.target);
  const comment = await host.data.comment(environment, job.commentId);
  if (target === undefined || comment === undefined) return;

  const author = await displayName(host.data, environment, comment.userId);
  const message: Post = { author, startsThread: job.startsThread, roomId: job.roomId, body: comment.body, link: commentLink(config.linkTemplate, job) };
  const body = JSON.stringify(target.format === 'discord' ? discordMessage(message) : slackMessage(message));
  const answer = await host.http.request(target.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (answer.status >= 200 && answer.status < 300) return;

  // The URL is a secret, so the log has its host alone.
  const said = new TextDecoder().decode(answer.body.subarray(0, 200)).trim();
  const reason = `${new URL(target.url).host} answered ${answer.status}${said === '' ? '' : `: ${said}`}`;
  if (FINAL.includes(answer.status)) {
    host.log.error({ environment: environment.slug, comment: job.commentId, reason }, 'a message was refused; check the URL of the incoming webhook');
    throw new Permanent(reason);
  }
  throw answer.retryAfterMs === null ? new Error(reason) : new RetryAfter(reason, answer.retryAfterMs);
}
