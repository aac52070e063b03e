import * as Type from 'typebox';
import type { Page } from '../../domain/lists/list-query.ts';
import { withUsers } from '../../domain/users/included-users.ts';
import { invalidField } from '../../model/errors.ts';
import type { ApiRequest } from './api-request.ts';
import { type ApiResponse, ok, page, type Parameter } from './route.ts';

const texts = {
  content: 'adds `comments` and `threads`: what the notifications are about, by id',
  comments: 'adds `comments` to each thread',
  users: 'adds `users`: the name, picture and kind of authors, mentioned users and those who reacted, by id',
} as const;
type Part = keyof typeof texts;

const NO_PARTS: ReadonlySet<Part> = new Set();

/** The parameter `include` of a route that can add these parts to its response. */
export function includeParameter(...parts: readonly Part[]): Parameter {
  const description = `Separated by commas. ${parts.map((part) => `\`${part}\`: ${texts[part]}`).join('. ')}.`;
  return {
    name: 'include',
    schema: Type.String({ pattern: `^(?:${parts.join('|')})(?:,(?:${parts.join('|')}))*$`, description }),
    example: parts.at(-1),
  };
}

/** The parts that the query asks for. Throws `invalid_request` for any other than `allowed`. */
export function includedParts(request: ApiRequest, ...allowed: readonly Part[]): ReadonlySet<Part> {
  const value = request.head.query === '' ? null : request.search.get('include');
  if (value === null) return NO_PARTS;
  const parts = value.split(',');
  if (parts.some((part) => !allowed.includes(part as Part))) {
    throw invalidField(
      'include',
      allowed.length === 1
        ? `must be ${allowed[0]}`
        : `must be ${allowed.join(' or ')}, or several of them separated by commas`,
      value,
    );
  }
  return new Set(parts as Part[]);
}

/** 200 with a page, with `users` if the query asks for them. */
export async function pageWithUsers(
  { ctx, actor }: ApiRequest,
  included: ReadonlySet<Part>,
  list: Page,
): Promise<ApiResponse> {
  return page(included.has('users') ? { ...list, text: await withUsers(ctx, actor, list) } : list);
}

/** 200 with JSON text, with `users` if the query asks for them. */
export async function okWithUsers(
  { ctx, actor }: ApiRequest,
  included: ReadonlySet<Part>,
  text: string,
): Promise<ApiResponse> {
  return ok(included.has('users') ? await withUsers(ctx, actor, text) : text);
}
