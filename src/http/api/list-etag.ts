import type { Actor } from '../../domain/access/actor.ts';
import { epochOf } from '../../domain/events/streams.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { fnv1a } from '../../lib/fnv1a.ts';
import type { RequestHead } from '../../net/request-head.ts';
import { isModified } from '../core/conditions.ts';
import { contentHash } from '../core/content-hash.ts';
import { listHead } from '../core/content-headers.ts';
import type { ApiRequest } from './api-request.ts';
import type { ApiResponse } from './route.ts';

/** Lists without parameters whose hashes are cached per actor. */
const MAX_CACHED_LISTS = 1_000;

/** The cached parts of an actor's ETags. */
interface EtagParts {
  /** Hash of what decides which records the actor sees. */
  readonly actorHash: number;
  /** Path of a list without parameters -> the part of its ETag that identifies list and actor. */
  readonly listHashes: BoundedMap<string, string>;
}

/** An `Actor` object lives as long as its key and environment stay unchanged. */
const partsByActor = new WeakMap<Actor, EtagParts>();

/**
 * The ETag of a list that changes only with an event of its environment. It is made of epoch and position of the
 * stream, the path and query of the list, and the actor.
 *
 * @param seq the last position of the environment, read before the list is read, so that the ETag never stands for a
 *   later state than the one that is sent
 */
export function listEtag({ ctx, actor, head }: ApiRequest, seq: number): string {
  return `W/"${epochOf(ctx.store, actor.environment)}-${seq}-${listHash(actor, head)}"`;
}

/**
 * Whether `If-None-Match` names this ETag. `*`, which stands for anything that exists, does not count: at this point
 * the list is not known to exist.
 */
export function namesEtag(head: RequestHead, etag: string): boolean {
  return head.ifNoneMatch !== '' && head.ifNoneMatch !== '*' && !isModified(head, etag);
}

/**
 * Adds an ETag to the response with a list, or returns a 304 if the client has that ETag. It is made of the content of
 * the list: for lists that can change without an event, so that `listEtag` would miss a change.
 */
export function withContentEtag({ ctx, head }: ApiRequest, response: ApiResponse): ApiResponse {
  const etag = `W/"${ctx.store.epoch}-${contentHash(response.body)}"`;
  const headers = [['ETag', etag]] as const;
  return isModified(head, etag) ? { ...response, headers } : { status: 304, body: '', head: listHead, headers };
}

function listHash(actor: Actor, { path, query }: RequestHead): string {
  let parts = partsByActor.get(actor);
  if (parts === undefined) {
    parts = { actorHash: actorHash(actor), listHashes: new BoundedMap(MAX_CACHED_LISTS) };
    partsByActor.set(actor, parts);
  }
  let result = query === '' ? parts.listHashes.get(path) : undefined;
  if (result === undefined) {
    result = (fnv1a(query, fnv1a(path, parts.actorHash)) >>> 0).toString(16);
    if (query === '') parts.listHashes.set(path, result);
  }
  return result;
}

/** Settings, such as the longest list, change without an event, and one key may reach fewer rooms than another. */
function actorHash({ environment, rooms }: Actor): number {
  return fnv1a(rooms === null ? '' : JSON.stringify(rooms), fnv1a(environment.updatedAt));
}
