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

/**
 * Before escaping, which makes at most five characters of one (`&amp;`): so Slack's 3 000 and Discord's 4 096 are not
 * reached.
 */
const MAX_BODY = 500;
const MAX_NAME = 80;
/**
 * A section of Slack, and the URL of an embed of Discord. A link that exceeds them is left out, because the message
 * would be refused.
 */
const MAX_SECTION = 3_000;
const MAX_DISCORD_URL = 2_048;

type Escape = (text: string) => string;

/**
 * The payload of an incoming webhook of Slack: Block Kit, and `text`, which Slack shows in notifications only.
 * Mattermost shows `text`, as Markdown, and ignores the blocks. No text of users in it mentions anybody or becomes a
 * link or a picture. https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 */
export function slackMessage(post: Post): Payload {
  // Slack turns no bare address, mention or name of a channel into a link where the text is verbatim.
  const section = (text: string): Payload => ({ type: 'section', text: { type: 'mrkdwn', text, verbatim: true } });
  return {
    text: slackParts(post, escapeMattermost).join('\n'),
    blocks: slackParts(post, escapeSlack).map(section),
    unfurl_links: false,
    unfurl_media: false,
  };
}

/** The heading of a message, and the quoted comment. */
function slackParts(post: Post, escape: Escape): [heading: string, quote: string] {
  const [author, room, body] = shortened(post).map(escape);
  const before = `*${author}* ${verbOf(post)}`;
  const linked = post.link === null ? null : `${before} <${escapeSlack(post.link.replaceAll('|', '%7C'))}|${room}>`;
  const heading = linked === null || linked.length > MAX_SECTION ? `${before} ${room}` : linked;
  return [heading, body === '' ? '_(attachment)_' : (body ?? '').replaceAll(/^/gm, '> ')];
}

/**
 * The payload of a webhook of Discord. No text of users in it mentions anybody, or becomes a link or a preview.
 * https://docs.discord.com/developers/resources/webhook#execute-webhook
 */
export function discordMessage(post: Post): Payload {
  const [author, room, body] = shortened(post).map(escapeDiscord);
  const description = body === '' ? '*(attachment)*' : (body ?? '');
  const embed = {
    title: room ?? '',
    description,
    ...(post.link === null || post.link.length > MAX_DISCORD_URL ? {} : { url: post.link }),
  };
  return { content: `**${author}** ${verbOf(post)}`, embeds: [embed], allowed_mentions: { parse: [] } };
}

/** Author and room, each in one line, and the text. */
function shortened({ author, roomId, body }: Post): string[] {
  const line = (text: string): string => excerpt(text.replaceAll(/\s+/g, ' '), MAX_NAME);
  return [line(author), line(roomId), excerpt(body, MAX_BODY)];
}

function verbOf({ startsThread }: Post): string {
  return startsThread ? 'started a thread on' : 'commented on';
}

/** Escapes `<…>`, with which Slack writes links and mentions. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/**
 * As `escapeSlack`, which Mattermost takes too, and for Markdown: `[text](address)` and `![picture](address)` end at
 * their bracket.
 */
function escapeMattermost(text: string): string {
  return withoutLinks(escapeSlack(text)).replaceAll(']', `]${NOTHING}`);
}

function escapeDiscord(text: string): string {
  const escaped = text.replaceAll(/[\\*_~`|<>[\]()#-]/g, String.raw`\$&`);
  return withoutLinks(escaped).replaceAll(/(discord\.gg|discord(?:app)?\.com)\//gi, `$1${NOTHING}/`);
}

/** A character that shows nothing and ends names and addresses. */
const NOTHING = '\u200B';

/** Puts `NOTHING` behind what begins mentions and bare addresses. */
function withoutLinks(text: string): string {
  return text
    .replaceAll('@', `@${NOTHING}`)
    .replaceAll('://', `:${NOTHING}//`)
    .replaceAll(/\bwww\./gi, `$&${NOTHING}`);
}
