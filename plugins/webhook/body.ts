import type { Data, Payload, PluginEnvironment, PluginEvent } from '../../src/plugins/api.ts';

/** The largest body in bytes, as Standard Webhooks recommends. */
const MAX_BYTES = 20 * 1024;
/** The longest text in a thin body, in UTF-16 units. The longest id is that of a room. */
const MAX_ID = 512;

/** The fields of a user with personal data, and their values after an erasure. */
const ERASED: Readonly<Record<string, Payload>> = {
  name: null,
  avatarUrl: null,
  metadata: {},
  firstSeenAt: null,
  lastSeenAt: null,
  online: false,
};

/**
 * The types of events with data of a user that an erasure removes, and the fields of those about moderation that do.
 */
const PERSONAL: readonly string[] = ['user.updated', 'moderation.held', 'moderation.reported'];
const CONTENT: readonly string[] = ['comment', 'thread'];

/** The id of a delivery, and its content. */
export interface Message {
  /** The id of the event: `webhook-id`, the same in every attempt. */
  readonly eventId: string;
  readonly type: string;
  readonly seq: number;
  /** The exact text that is sent and signed. */
  readonly body: string;
}

/**
 * The message for an event. Its body is `{type, timestamp, data}`; `data` is that of the event, with its `seq`,
 * `roomId`, `threadId` and `actor`. If it is longer than 20 KB, `data` has `thin: true` and no texts: only ids, numbers
 * and times.
 */
export function messageOf(event: PluginEvent): Message {
  const { eventId, type, seq } = event;
  const place = { seq, roomId: event.roomId, threadId: event.threadId, actor: event.actor };
  const full = render(event, { ...fieldsOf(event.data), ...place });
  const body =
    Buffer.byteLength(full) <= MAX_BYTES ? full : render(event, { ...idsOf(event.data), ...place, thin: true });
  return { eventId, type, seq, body };
}

/**
 * The body of a message as it may be sent now: without the personal data of a user who was erased since, and without
 * what moderators held of them or users reported, as the log returns the event then. A later user with the id changes
 * nothing of that.
 */
export async function currentBody(
  data: Data,
  environment: PluginEnvironment,
  { type, body }: Pick<Message, 'type' | 'body'>,
): Promise<string> {
  if (!PERSONAL.includes(type)) return body;
  const message = JSON.parse(body) as {
    readonly timestamp: string;
    readonly data: Readonly<Record<string, Payload>> & { readonly userId: string };
  };
  const user = await data.user(environment, message.data.userId);
  if (user !== undefined && user.createdAt <= message.timestamp) return body;
  const fields = Object.entries(message.data);
  if (type !== 'user.updated')
    return JSON.stringify({ ...message, data: Object.fromEntries(fields.filter(([name]) => !CONTENT.includes(name))) });
  return JSON.stringify({
    ...message,
    data: Object.fromEntries(fields.map(([name, value]) => [name, name in ERASED ? ERASED[name] : value])),
  });
}

function render({ type, at }: PluginEvent, data: object): string {
  return JSON.stringify({ type, timestamp: at, data });
}

function fieldsOf(data: unknown): Readonly<Record<string, Payload>> {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as Record<string, Payload>) : {};
}

/** The fields that identify a record: those of `data` itself, and the ids of the records in it. */
function idsOf(data: unknown): Readonly<Record<string, unknown>> {
  const kept = Object.entries(fieldsOf(data)).flatMap(([name, value]): [string, unknown][] => {
    if (typeof value !== 'object' || value === null) return isText(name, value) ? [] : [[name, value]];
    const { id } = fieldsOf(value);
    return id === undefined ? [] : [[name, { id }]];
  });
  return Object.fromEntries(kept);
}

function isText(name: string, value: Payload): boolean {
  return typeof value === 'string' && (value.length > MAX_ID || name === 'body' || name === 'name');
}
