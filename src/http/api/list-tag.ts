import { hash } from 'node:crypto';
import type { Actor } from '../../domain/context.ts';
import { epochOf } from '../../domain/events/streams.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { fnv1a } from '../../lib/fnv1a.ts';
import type { Store } from '../../ports/store.ts';
import { listHead } from '../core/content-headers.ts';
import type { RequestParts } from './api-request.ts';
import { isModified } from '../core/conditions.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Answer } from './route.ts';

/** Lists without parameters that are remembered of one actor. */
const REMEMBERED = 1_000;

interface Asker {
  readonly fingerprint: number;
  /** The part of a tag that tells a list, by its path. */
  readonly lists: BoundedMap<string, string>;
}

/** Actors, who are remembered as long as their key and environment stay as they are. */
const askers = new WeakMap<Actor, Asker>();

/**
 * The ETag of a list that changes only with an event of its environment: position of the log, and who asks for what.
 *
 * @param seq position of the log, looked at before the list is read, so that the tag never names a later state than what is sent
 */
export function listTag(store: Store, seq: number, actor: Actor, { path, query }: RequestHead): string {
  let asker = askers.get(actor);
  if (asker === undefined) {
    asker = { fingerprint: fingerprintOf(actor), lists: new BoundedMap(REMEMBERED) };
    askers.set(actor, asker);
  }
  let list = query === '' ? asker.lists.get(path) : undefined;
  if (list === undefined) {
    list = (fnv1a(query, fnv1a(path, asker.fingerprint)) >>> 0).toString(16);
    if (query === '') asker.lists.set(path, list);
  }
  return `W/"${epochOf(store, actor.environment)}-${seq}-${list}"`;
}

/**
 * Whether the client has the list with this ETag already. It may be asked for before the list is known to exist, so `*`,
 * which stands for whatever there is, does not count.
 */
export function isUnmodified(head: RequestHead, tag: string): boolean {
  return head.ifNoneMatch !== '' && head.ifNoneMatch !== '*' && !isModified(head, tag);
}

/** The answer with an ETag made of what it says, or 304: for a list that may change without an event. */
export function tagged({ ctx, exchange }: RequestParts, answer: Answer): Answer {
  const tag = `W/"${ctx.store.epoch}-${hash('sha256', answer.body, 'base64url').slice(0, 22)}"`;
  const headers = [['ETag', tag]] as const;
  return isModified(exchange.head, tag) ? { ...answer, headers } : { status: 304, body: '', head: listHead, headers };
}

/** Settings, such as the longest list, change without an event; and a key may reach less than another. */
function fingerprintOf({ environment, rooms }: Actor): number {
  return fnv1a(rooms === null ? '' : JSON.stringify(rooms), fnv1a(environment.updatedAt));
}
