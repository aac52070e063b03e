import { hostileValue, jsonBytes, jsonText, mutated } from './hostile.ts';
import type { KnownIds } from './ids.ts';
import type { Random } from './random.ts';

/** A valid message of each type that a client may send. */
const EXAMPLES: Readonly<Record<string, (random: Random, ids: KnownIds) => unknown>> = {
  pong: () => undefined,
  'auth.refresh': () => ({ token: 'e30.e30.AAAA' }),
  'room.join': (random, ids) => ({ roomId: ids.pick(random, 'roomId'), state: { page: 'setup' } }),
  'room.leave': (random, ids) => ({ roomId: ids.pick(random, 'roomId') }),
  'presence.update': (random, ids) => ({
    roomId: ids.pick(random, 'roomId'),
    state: { page: 'setup', at: random.below(100) },
  }),
  cursor: (random, ids) => ({ roomId: ids.pick(random, 'roomId'), x: random.next(), y: random.next() }),
  typing: (random, ids) => ({
    roomId: ids.pick(random, 'roomId'),
    threadId: ids.pick(random, 'threadId'),
    typing: random.chance(0.5),
  }),
  'room.broadcast': (random, ids) => ({ roomId: ids.pick(random, 'roomId'), data: { wave: random.below(9) } }),
  'p2p.signal': (random, ids) => ({
    roomId: ids.pick(random, 'roomId'),
    to: ids.pick(random, 'connectionId'),
    data: { sdp: 'v=0' },
  }),
  'room.get': (random, ids) => ({ roomId: ids.pick(random, 'roomId'), includeComments: random.chance(0.3) }),
  'thread.get': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
  'thread.create': (random, ids) => ({
    roomId: ids.pick(random, 'roomId'),
    body: 'Where is the logo?',
    mentions: ['bob'],
    position: { x: 0.5, y: 0.25 },
  }),
  'thread.update': (random, ids) => ({
    threadId: ids.pick(random, 'threadId'),
    position: { x: random.next(), y: random.next(), quote: 'the logo' },
  }),
  'thread.resolve': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
  'thread.reopen': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
  'comment.create': (random, ids) => ({
    threadId: ids.pick(random, 'threadId'),
    body: 'At the top',
    mentions: ['ann'],
  }),
  'comment.update': (random, ids) => ({ commentId: ids.pick(random, 'commentId'), body: 'At the bottom' }),
  'comment.delete': (random, ids) => ({ commentId: ids.pick(random, 'commentId') }),
  'comment.report': (random, ids) => ({ commentId: ids.pick(random, 'commentId'), reason: 'spam' }),
  'reaction.add': (random, ids) => ({
    commentId: ids.pick(random, 'commentId'),
    emoji: random.pick(['👍', ':tada:', '❤️']),
  }),
  'reaction.remove': (random, ids) => ({ reactionId: ids.pick(random, 'reactionId') }),
  'users.lookup': (random, ids) =>
    random.chance(0.5) ? { ids: ['ann', 'bob'] } : { q: 'a', roomId: ids.pick(random, 'roomId') },
  'notifications.list': (random) => ({ unread: random.chance(0.5), limit: 1 + random.below(9) }),
  'notifications.read': (random) => (random.chance(0.5) ? { all: true } : { ids: ['nt_1kdyak3sefd7e3a0c9b41f28'] }),
  'notification-settings.get': () => ({}),
  'notification-settings.put': (random) => ({ email: { reply: random.chance(0.5) } }),
  'thread.subscription': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
  'thread.subscribe': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
  'thread.unsubscribe': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
  'thread.mute': (random, ids) => ({ threadId: ids.pick(random, 'threadId') }),
};

/** The types that have an example. */
export const MESSAGE_TYPES: readonly string[] = Object.keys(EXAMPLES);

/** A frame with `id`, which the server answers by, if it is well-formed. */
export function nextFrame(
  random: Random,
  ids: KnownIds,
  id: number,
): { readonly type: string; readonly frame: Buffer; readonly wellFormed: boolean } {
  const type = random.pick(MESSAGE_TYPES);
  const example = EXAMPLES[type]?.(random, ids);
  const data =
    random.chance(0.5) || example === undefined
      ? example
      : random.chance(0.95)
        ? mutated(random, example)
        : hostileValue(random);
  if (random.chance(0.97)) return { type, frame: Buffer.from(jsonText({ type, id, data })), wellFormed: true };
  const broken = random.chance(0.5) ? mutated(random, { type, id, data }) : { type, id, data };
  return { type, frame: jsonBytes(random, broken), wellFormed: false };
}
