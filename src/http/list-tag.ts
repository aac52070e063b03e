import { hash } from 'node:crypto';
import type { Actor } from '../domain/context.ts';
import { fingerprint } from '../lib/fingerprint.ts';
import type { Store } from '../ports/store.ts';
import { listHead } from './answer.ts';
import type { RequestParts } from './api-request.ts';
import { isNews } from './conditions.ts';
import type { RequestHead } from './request-head.ts';
import type { Answer } from './route.ts';

/** Fingerprints of actors, who are remembered as long as their key and environment stay as they are. */
const askers = new WeakMap<Actor, number>();

/**
 * The ETag of a list that changes only with an event of its environment: position of the log, and who asks for what.
 *
 * @param seq position of the log, looked at before the list is read, so that the tag never names a later state than what is sent
 */
export function listTag({ epoch }: Store, seq: number, actor: Actor, { path, query }: RequestHead): string {
  let asker = askers.get(actor);
  if (asker === undefined) {
    asker = askerOf(actor);
    askers.set(actor, asker);
  }
  const address = fingerprint(query, fingerprint(path, asker));
  return `W/"${epoch}-${seq}-${(address >>> 0).toString(16)}"`;
}

/**
 * Whether the client has the list with this ETag already. It may be asked for before the list is known to exist, so `*`,
 * which stands for whatever there is, does not count.
 */
export function hasAlready(head: RequestHead, tag: string): boolean {
  return head.ifNoneMatch !== '' && head.ifNoneMatch !== '*' && !isNews(head, tag);
}

/** The answer with an ETag made of what it says, or 304: for a list that may change without an event. */
export function tagged({ ctx, exchange }: RequestParts, answer: Answer): Answer {
  const tag = `W/"${ctx.store.epoch}-${hash('sha256', answer.body, 'base64url').slice(0, 22)}"`;
  const headers = [['ETag', tag]] as const;
  return isNews(exchange.head, tag) ? { ...answer, headers } : { status: 304, body: '', head: listHead, headers };
}

/** Settings, such as the longest list, change without an event; and a key may reach less than another. */
function askerOf({ environment, rooms }: Actor): number {
  return fingerprint(rooms === null ? '' : JSON.stringify(rooms), fingerprint(environment.updatedAt));
}
