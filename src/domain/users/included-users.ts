import type { Comment } from '../../model/comment.ts';
import type { Thread } from '../../model/thread.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { addToAnswer, parseAnswer } from '../lists/answer-text.ts';
import { byId, usersById } from './lookup.ts';

type AnyThread = Partial<Thread> & { readonly comments?: readonly Comment[] };

/** The parts of a response that name users. */
interface ResponseBody {
  readonly thread?: AnyThread;
  readonly threads?: readonly AnyThread[];
  readonly comments?: readonly Comment[];
  readonly comment?: Comment;
  readonly items?: readonly (AnyThread | Comment)[];
}

/** The ids in responses that are cached as one object, such as the first page of a list. */
const idsByResponse = new WeakMap<object, readonly string[]>();

/**
 * Adds `users` to the JSON of a response with threads or comments: the authors, the mentioned users and those who
 * reacted, by id. Unknown ones are absent.
 *
 * @param response the text, or an object that holds the text and is never reused for another text
 */
export async function withUsers(
  ctx: Context,
  actor: Actor,
  response: string | { readonly text: string | Uint8Array },
): Promise<string> {
  const text = textOf(typeof response === 'string' ? response : response.text);
  let ids = typeof response === 'string' ? undefined : idsByResponse.get(response);
  ids ??= userIdsIn(parseAnswer<ResponseBody>(text));
  if (typeof response !== 'string') idsByResponse.set(response, ids);
  return addToAnswer(text, { users: byId(await usersById(ctx, actor, ids)) });
}

const textOf = (text: string | Uint8Array): string =>
  typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString();

function userIdsIn({ thread, threads = [], comments = [], comment, items = [] }: ResponseBody): readonly string[] {
  const ids = new Set<string>();
  const add = (record: AnyThread | Comment): void => {
    if (record.userId !== undefined) ids.add(record.userId);
    if ('resolvedBy' in record && typeof record.resolvedBy === 'string') ids.add(record.resolvedBy);
    if ('mentions' in record) for (const id of record.mentions) ids.add(id);
    if ('reactions' in record) for (const { userId } of record.reactions) ids.add(userId);
    if ('comments' in record) for (const one of record.comments ?? []) add(one);
  };
  for (const record of [...threads, ...comments, ...items]) add(record);
  if (thread !== undefined) add(thread);
  if (comment !== undefined) add(comment);
  return [...ids];
}
