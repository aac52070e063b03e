import type { Command } from 'commander';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { type Explanation, explainNotification } from '../../../domain/notifications/explain.ts';
import { printable } from '../../../lib/printable.ts';
import { addCommand, addGroup } from '../../command.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { printResult } from '../../terminal/output.ts';

/** Adds `notify explain`. */
export function register(program: Command): void {
  const notify = addGroup(program, 'notify', 'Notifications of comments.');

  addCommand(notify, 'explain <commentId> <userId>', {
    summary: 'Explain why a user was or was not notified of a comment.',
    details: 'Subscriptions, settings and rooms are shown as they are now. They may have been different when the comment was written.',
    examples: ['collab notify explain cm_01kdyak3sepgf6w7g09t_1kdyamycem3f18nm bob --env default'],
  })
    .requiredOption('--env <slug>', 'Environment of the comment.')
    .action(explain);
}

async function explain(commentId: string, userId: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const explanation = await withStore(at, async (ctx) => explainNotification(ctx, await findEnvironment(ctx, env), commentId, userId));
  printResult(at.json, explanation, () => stepsOf(explanation).map(printable).join('\n'));
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

function stepsOf(found: Explanation): string[] {
  const { userId, notification, settings } = found;
  const rooms = found.tokenRooms === null ? 'their latest token is for all rooms, or none was seen' : `their latest token is confined to ${found.tokenRooms.join(', ') || 'no room'}`;
  return [
    `Comment ${found.commentId} in thread ${found.threadId}, room ${found.roomId}`,
    `  known user      ${yesNo(found.isKnown)}`,
    `  author          ${yesNo(found.isAuthor)}`,
    `  mentioned       ${yesNo(found.isMentioned)}`,
    `  participant     ${yesNo(found.isParticipant)}${found.isParticipant ? ' (had commented in the thread before)' : ''}`,
    `  subscription    ${found.subscription}`,
    `  may see room    ${yesNo(found.maySeeRoom)} (${rooms})`,
    `  channels        ${Object.entries(settings).map(([channel, { mention, reply }]) => `${channel}: mention ${onOff(mention)}, reply ${onOff(reply)}`).join('; ')}`,
    `  by the rules    ${reasons[found.rule]}`,
    `  notification    ${notificationText(notification, found.wasNotified)}`,
    ...(found.pendingEvents === 0 ? [] : [`  still to handle ${found.pendingEvents} events; if the comment is new, wait a moment. If the number does not fall, see the log of the background worker`]),
    `${userId} was ${found.wasNotified ? '' : 'not '}notified.`,
  ];
}

function notificationText(notification: Explanation['notification'], wasNotified: boolean): string {
  if (notification === null) return wasNotified ? 'removed: too old, or the user was erased' : 'none';
  const { id, kind, createdAt, readAt, inApp } = notification;
  const state = inApp ? (readAt === null ? 'unread' : `read ${readAt}`) : 'not in the inbox (setting inApp, or a filter of a plugin), for the other channels only';
  return `${id}, ${kind}, ${createdAt}, ${state}`;
}

const yesNo = (value: boolean): string => (value ? 'yes' : 'no');
const onOff = (value: boolean): string => (value ? 'on' : 'off');
