import { HOSTILE_TEXTS } from './hostile.ts';
import type { Random } from './random.ts';

/** Parameters of paths, and fields of bodies, that name something the server may know. */
export type IdKind =
  | 'roomId'
  | 'threadId'
  | 'commentId'
  | 'reactionId'
  | 'userId'
  | 'fileId'
  | 'envId'
  | 'environmentId'
  | 'keyId'
  | 'connectionId';

/** Ids kept of each kind; the oldest go first. */
const MOST = 40;

/** The ids that answers have named, for later requests to use. */
export class KnownIds {
  readonly #known = new Map<IdKind, string[]>();

  add(kind: IdKind, id: unknown): void {
    if (typeof id !== 'string' || id === '') return;
    const ids = this.#known.get(kind) ?? [];
    if (ids.includes(id)) return;
    ids.push(id);
    if (ids.length > MOST) ids.shift();
    this.#known.set(kind, ids);
  }

  /** Mostly an id that is known, now and then one that is well-formed and unknown, or hostile. */
  pick(random: Random, kind: IdKind): string {
    const ids = this.#known.get(kind) ?? [];
    const choice = random.next();
    if (ids.length > 0 && choice < 0.85) return random.pick(ids);
    if (choice < 0.93) return `${kind}-${random.below(50)}`;
    return random.pick(HOSTILE_TEXTS);
  }

  /** Notes what a JSON answer or frame names. */
  learn(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const { thread, comment, reaction, user, room, comments, items, data } = value as Record<string, unknown>;
    this.add('threadId', idOf(thread));
    this.add('commentId', idOf(comment));
    this.add('reactionId', idOf(reaction));
    this.add('userId', idOf(user));
    this.add('roomId', idOf(room));
    for (const each of Array.isArray(comments) ? comments : []) this.add('commentId', idOf(each));
    if (thread !== undefined) this.learn({ comments: (thread as Record<string, unknown>)['comments'] });
    if (data !== undefined) this.learn(data);
    if (typeof data === 'object' && data !== null)
      this.add('connectionId', (data as Record<string, unknown>)['connectionId']);
    if (Array.isArray(items) && items.length > 0 && typeof (value as Record<string, unknown>)['url'] === 'string')
      this.add('fileId', idOf(items[0]));
    const { id, url } = value as Record<string, unknown>;
    if (typeof url === 'string' && url.includes('/files/')) this.add('fileId', id);
  }
}

function idOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)['id'] : undefined;
}
