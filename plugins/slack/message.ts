import type { Payload } from '../../src/plugins/api.ts';
import { excerpt } from '../shared/comment-text.ts';

/** The content of a message. */
export interface Post {
  readonly author: string;
  /** Whether the comment started a thread. */
  readonly startsThread: boolean;
  readonly roomId: string;
  readonly body: string;
  /** The page of the comment; null if it is unknown. */
  readonly link: string | null;
}

/** Slack takes 3 000 characters in a section, Discord 4 096 in an embed; `&amp;` is 5 of them. */
const MAX_BODY = 500;
const MAX_NAME = 80;

/**
 * The payload of an incoming webhook of Slack: Block Kit, and `text` for its notifications. Mattermost shows `text` and ignores
 * the blocks. https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 */
export function slackMessage(post: Post): Payload {
  const [author, room, body] = shortened(post).map(escapeSlack);
  const place = post.link === null ? room : `<${escapeSlack(post.link.replaceAll('|', '%7C'))}|${room}>`;
  const heading = `*${author}* ${verbOf(post)} ${place}`;
  const quote = body === '' ? '_(attachment)_' : (body ?? '').replaceAll(/^/gm, '> ');
  const section = (text: string): Payload => ({ type: 'section', text: { type: 'mrkdwn', text } });
  return { text: `${heading}\n${quote}`, blocks: [section(heading), section(quote)], unfurl_links: false, unfurl_media: false };
}

/** The payload of a webhook of Discord. No text in it mentions anybody. https://docs.discord.com/developers/resources/webhook#execute-webhook */
export function discordMessage(post: Post): Payload {
  const [author, room, body] = shortened(post).map(escapeDiscord);
  const description = body === '' ? '*(attachment)*' : (body ?? '');
  const embed = { title: room ?? '', description, ...(post.link === null ? {} : { url: post.link }) };
  return { content: `**${author}** ${verbOf(post)}`, embeds: [embed], allowed_mentions: { parse: [] } };
}

function shortened({ author, roomId, body }: Post): string[] {
  return [excerpt(author, MAX_NAME), excerpt(roomId, MAX_NAME), excerpt(body, MAX_BODY)];
}

function verbOf({ startsThread }: Post): string {
  return startsThread ? 'started a thread on' : 'commented on';
}

/** Escapes what would be a link or mention: Slack's `<…>`, and the `@all` of Mattermost, behind whose `@` an invisible character is put. */
function escapeSlack(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(/@(?=all|channel|everyone|here)/gi, '@\u200B');
}

function escapeDiscord(text: string): string {
  return text.replaceAll(/[\\*_~`|<>[\]()#-]/g, String.raw`\$&`).replaceAll('@', '@\u200B');
}
