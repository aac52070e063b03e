import Type from 'typebox';
import type { Page } from '../../domain/lists/list-query.ts';
import { withUsers } from '../../domain/users/included-users.ts';
import { invalidField } from '../../model/errors.ts';
import type { ApiRequest } from './api-request.ts';
import { type Answer, ok, page, type Parameter } from './route.ts';

const texts = {
  comments: 'adds `comments` to each thread',
  users: 'adds `users`: the name, picture and kind of authors, mentioned users and those who reacted, by id',
} as const;
type Part = keyof typeof texts;

/** The parameter `include` of a route that can add these parts to its answer. */
export function includeParameter(...parts: readonly Part[]): Parameter {
  const description = `Separated by commas. ${parts.map((part) => `\`${part}\`: ${texts[part]}`).join('. ')}.`;
  return { name: 'include', schema: Type.String({ pattern: `^(?:${parts.join('|')})(?:,(?:${parts.join('|')}))*$`, description }) };
}

/** The parts that the query asks for. Throws `invalid_request` for any other than `allowed`. */
export function includedParts(request: ApiRequest, ...allowed: readonly Part[]): ReadonlySet<Part> {
  const value = request.head.query === '' ? null : request.search.get('include');
  if (value === null) return new Set();
  const parts = value.split(',');
  if (parts.some((part) => !allowed.includes(part as Part))) {
    throw invalidField('include', allowed.length === 1 ? `must be ${allowed[0]}` : `must be ${allowed.join(' or ')}, or several of them separated by commas`, value);
  }
  return new Set(parts as Part[]);
}

/** 200 with a page, and with `users` if the query asks for them. */
export async function pageWithUsers({ ctx, actor }: ApiRequest, included: ReadonlySet<Part>, list: Page): Promise<Answer> {
  return included.has('users') ? page({ ...list, text: await withUsers(ctx, actor, list) }) : page(list);
}

/** 200 with JSON text, and with `users` if the query asks for them. */
export async function okWithUsers({ ctx, actor }: ApiRequest, included: ReadonlySet<Part>, text: string): Promise<Answer> {
  return ok(included.has('users') ? await withUsers(ctx, actor, text) : text);
}
