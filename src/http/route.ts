import type { TSchema } from 'typebox';
import type { Outcome } from '../domain/idempotency.ts';
import type { Page } from '../domain/list-query.ts';
import type { ErrorCode } from '../errors.ts';
import type { ApiRequest } from './api-request.ts';

/** A route of the API: what serves it, and what the OpenAPI document says about it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`; parameters as `:name`. */
  readonly path: string;
  /** Stable: clients are generated from it. */
  readonly operationId: string;
  readonly summary: string;
  /** Longer text for the document, where the summary doesn't say it all. */
  readonly description?: string;
  /** `secret` asks for `Authorization: Bearer sk_…`, `public` for nothing. */
  readonly credential: 'secret' | 'public';
  /** What the key must be good for, checked before the body is looked at; of a public route nothing is checked. */
  readonly access: 'read' | 'create' | 'change';
  /** Whether it answers with a list, which caches may keep if they ask again each time. */
  readonly list?: boolean;
  /** Parameters of the query. */
  readonly query?: readonly Parameter[];
  /** The JSON body; absent for a route that takes none. */
  readonly body?: TSchema;
  /** Takes `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** The answers that are no refusals: status -> schema of the JSON body. */
  readonly answers: Readonly<Record<number, TSchema>>;
  /** The refusals that are its own, besides those that every route has. */
  readonly errors: readonly ErrorCode[];
  /** Answers the request, or takes the exchange over and returns null. Throws `CollabError`. */
  readonly handle: (request: ApiRequest) => Promise<Answer | null>;
}

/** A parameter of the query, for the document. */
export interface Parameter {
  readonly name: string;
  readonly schema: TSchema;
}

/** What a handler answers with. */
export interface Answer {
  readonly status: number;
  /** JSON. */
  readonly body: string | Uint8Array;
  /** Where the list goes on, sent as `Link`. */
  readonly nextCursor?: string | null;
  /** Whether an earlier request did the work and this is its answer again. */
  readonly replayed?: boolean;
}

/** 200 with JSON text. */
export function ok(body: string | Uint8Array): Answer {
  return { status: 200, body };
}

/** 200 with a page of a list. */
export function page(list: Page): Answer {
  return { status: 200, body: list.text, nextCursor: list.nextCursor };
}

/** What a create answered, now or to the request that this one repeats. */
export function outcome(result: Outcome): Answer {
  return result;
}
