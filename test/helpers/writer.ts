import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import type { TenantRequest, Tenant } from './service.ts';
import type { TestResponse } from './http.ts';

/** A thread as its creation answers. */
export type CreatedThread = Thread & { readonly comments: readonly Comment[] };

/** The content of a refusal. */
export interface Failure {
  readonly error: string;
}

/** Makes a user known, by `PUT /users/:userId`. */
export async function addUser(tenant: Tenant, userId: string, fields: object = {}): Promise<void> {
  done(200, await tenant.request('PUT', `/users/${encodeURIComponent(userId)}`, { body: fields }));
}

/** Creates a thread; `ann`, who must be known, says `Hello` unless the fields say otherwise. */
export async function addThread(
  tenant: Tenant,
  roomId: string,
  fields: object = {},
  options: TenantRequest = {},
): Promise<CreatedThread> {
  const body = { userId: 'ann', body: 'Hello', ...fields };
  return done(
    201,
    await tenant.request<{ thread: CreatedThread }>('POST', `/rooms/${encodeURIComponent(roomId)}/threads`, {
      body,
      ...options,
    }),
  ).thread;
}

/** Adds a comment to a thread, as `addThread` does. */
export async function addComment(
  tenant: Tenant,
  threadId: string,
  fields: object = {},
  options: TenantRequest = {},
): Promise<Comment> {
  const body = { userId: 'ann', body: 'Hello', ...fields };
  return done(
    201,
    await tenant.request<{ comment: Comment }>('POST', `/threads/${threadId}/comments`, { body, ...options }),
  ).comment;
}

/** The body of an answer. Throws when it has another status. */
export function done<T>(status: number, answer: TestResponse<T>): T {
  if (answer.status !== status) throw new Error(`${answer.status} in place of ${status}: ${answer.text}`);
  return answer.json;
}
