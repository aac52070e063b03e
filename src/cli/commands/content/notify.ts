import type { Command } from 'commander';
import { commentNotFound, findComment } from '../../../domain/comments/find-comment.ts';
import type { Context } from '../../../domain/context.ts';
import { type Explanation, explainNotification } from '../../../domain/notifications/explain.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import { printable } from '../../../lib/printable.ts';
import { createLogger } from '../../../observability/log.ts';
import { type DeliveryStep, deliverySteps } from '../../../plugins/background/delivery-steps.ts';
import { addCommand, addGroup } from '../../command.ts';
import { environmentWith } from '../../shared/environment-with.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { printResult } from '../../terminal/output.ts';

const STDERR = 2;

/** Adds `notify explain`. */
export function register(program: Command): void {
  const notify = addGroup(program, 'notify', 'Notifications of comments.');

  addCommand(notify, 'explain <commentId> <userId>', {
    summary: 'Explain why a user was or was not notified of a comment.',
    details:
      'Shows for each channel whether it delivers the notification, and what keeps it from that: loads the ' +
      'plugins and runs their filters notification.deliver, without changing anything. Subscriptions, ' +
      'settings, rooms and filters are shown as they are now. They may have been different when the comment ' +
      'was written.',
    examples: [
      'collab notify explain cm_01kdyak3sepgf6w7g09t_1kdyamycem3f18nm bob',
      'collab notify explain cm_01kdyak3sepgf6w7g09t_1kdyamycem3f18nm bob --env default',
    ],
  })
    .option('--env <slug>', 'Environment of the comment, if several environments have one with this id.')
    .action(explain);
}

async function explain(commentId: string, userId: string, { env }: { env?: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const explained = await withStore(at, async (ctx, config) => {
    const environment = await environmentOf(ctx, env, commentId);
    const explanation = await explainNotification(ctx, environment, commentId, userId);
    const { notification, settings } = explanation;
    const log = createLogger({ level: config.log.level, name: 'cli', output: STDERR });
    const channels =
      notification === null
        ? []
        : await deliverySteps(
            { ctx, config, log },
            { id: environment.id, slug: environment.slug },
            { notification, inApp: notification.inApp, settings },
          );
    return withChannels(explanation, channels);
  });
  printResult(at.json, explained, () => stepsOf(explained).map(printable).join('\n'));
}

/** The environment that has the comment: the only one, unless `env` names it. */
async function environmentOf(ctx: Context, env: string | undefined, commentId: string): Promise<Environment> {
  const found = await environmentWith(ctx, env, `comment ${commentId}`, ({ id }) =>
    findComment(ctx.store, id, commentId),
  );
  if (found === undefined) throw commentNotFound();
  return found.environment;
}

/** An explanation with what became of the notification in each channel; none if there is no notification. */
interface Explained extends Explanation {
  readonly channels: readonly DeliveryStep[];
}

/** A notification that no channel delivers has notified nobody. One that was removed since may have been delivered. */
function withChannels(explanation: Explanation, channels: readonly DeliveryStep[]): Explained {
  const isDelivered = channels.some(({ outcome }) => outcome === 'shown' || outcome === 'passed');
  return { ...explanation, channels, wasNotified: explanation.wasNotified && (channels.length === 0 || isDelivered) };
}

const reasons: Readonly<Record<Explanation['rule'], string>> = {
  mention: 'the rules notify them, because the comment mentions them',
  reply: 'the rules notify them, because they follow the thread',
  actor: 'nobody is notified of their own comment',
  not_following: 'not mentioned, and does not follow the thread',
  unsubscribed: 'not mentioned, and has unsubscribed from the thread',
  muted: 'has muted the thread',
  unknown_user: 'no user has this id any more, and only mentions are kept for such ids',
  room: 'may not see the room',
};

function stepsOf(found: Explained): string[] {
  const { notification, settings, channels } = found;
  const rooms =
    found.tokenRooms === null
      ? 'their latest token is for all rooms, or none was seen'
      : `their latest token is confined to ${found.tokenRooms.join(', ') || 'no room'}`;
  return [
    `Comment ${found.commentId} in thread ${found.threadId}, room ${found.roomId}`,
    `  known user      ${yesNo(found.isKnown)}`,
    `  author          ${yesNo(found.isAuthor)}`,
    `  mentioned       ${yesNo(found.isMentioned)}`,
    `  participant     ${yesNo(found.isParticipant)}${found.isParticipant ? ' (had commented in the thread before)' : ''}`,
    `  subscription    ${found.subscription}`,
    `  may see room    ${yesNo(found.maySeeRoom)} (${rooms})`,
    `  channels        ${Object.entries(settings)
      .map(([channel, { mention, reply }]) => `${channel}: mention ${onOff(mention)}, reply ${onOff(reply)}`)
      .join('; ')}`,
    `  by the rules    ${reasons[found.rule]}`,
    `  notification    ${notificationText(notification, found.wasNotified)}`,
    ...changeSince(found),
    ...channels.map(
      (step) => `  ${`via ${step.channel}`.padEnd(15)} ${outcomes[step.outcome](step, notification?.kind ?? '')}`,
    ),
    ...(found.pendingEvents === 0
      ? []
      : [
          `  still to handle ${found.pendingEvents} events; if the comment is new, wait a moment. If the number ` +
            'does not fall, see the log of the background worker',
        ]),
    conclusion(found),
  ];
}

/**
 * A line that resolves the contradiction if the rules, applied to rooms, subscription and users as they are now, give
 * another result than when the comment was written.
 */
function changeSince({ rule, notification, wasNotified, pendingEvents }: Explained): string[] {
  const wouldBe = rule === 'mention' || rule === 'reply';
  if (pendingEvents > 0 || wouldBe === (wasNotified || notification !== null)) return [];
  const then = wouldBe
    ? 'the rules did not notify them when the comment was written'
    : 'the rules notified them when the comment was written';
  return [`  since then      ${then}: their rooms, subscription or comments have changed`];
}

const outcomes: Readonly<Record<DeliveryStep['outcome'], (step: DeliveryStep, kind: string) => string>> = {
  shown: () => 'in the inbox',
  passed: ({ channel }) => `given to the plugin ${channel}, whose log says what it could not deliver`,
  setting: (_, kind) => `left out: the user has turned ${kind} off`,
  filter: ({ filter }) => `left out: a filter of the plugin ${filter} rejects it`,
  hidden: () => 'left out when it was created: a setting or a filter that allows it now',
  nothing: ({ channel }) => `left out: the plugin ${channel} has nobody to deliver it to in this environment`,
  off: ({ channel }) => `left out: the plugin ${channel} is turned off in this environment`,
  missing: ({ channel }) => `left out: no plugin ${channel} is loaded`,
};

function conclusion({ userId, wasNotified, notification, channels }: Explained): string {
  if (!wasNotified)
    return `${userId} was not notified${notification === null ? '' : ': no channel delivers the notification'}.`;
  const others = channels.filter(({ outcome }) => outcome === 'passed').map(({ channel }) => channel);
  return `${userId} was notified${notification?.inApp === false ? `, not in the inbox but through ${others.join(', ')}` : ''}.`;
}

function notificationText(notification: Explanation['notification'], wasNotified: boolean): string {
  if (notification === null) return wasNotified ? 'removed: too old, or the user was erased' : 'none';
  const { id, kind, createdAt, readAt, inApp } = notification;
  const state = inApp
    ? readAt === null
      ? 'unread'
      : `read ${readAt}`
    : 'not in the inbox (setting inApp, or a filter of a plugin), for the other channels only';
  return `${id}, ${kind}, ${createdAt}, ${state}`;
}

const yesNo = (value: boolean): string => (value ? 'yes' : 'no');
const onOff = (value: boolean): string => (value ? 'on' : 'off');
