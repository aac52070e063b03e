import type { TSchema } from 'typebox';
import type { Actor } from '../../domain/context.ts';
import type { Page } from '../../domain/lists/list-query.ts';
import type { CollabError, ErrorCode } from '../../model/errors.ts';
import type { ApiRequest } from './api-request.ts';
import type { Header } from '../../net/response-headers.ts';

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
  /** `secret` asks for `Authorization: Bearer sk_…`, `user` for a publishable key and a user token, `either` for one or the other, `admin` for `Bearer adm_…`, `public` for nothing. */
  readonly credential: 'secret' | 'user' | 'either' | 'admin' | 'public';
  /** What the key must be good for, checked before the body is looked at; of a route for admins or everybody nothing is checked. */
  readonly access: 'read' | 'create' | 'change';
  /** Whether it answers with a list, which caches may keep if they ask again each time. */
  readonly list?: boolean;
  /** Counted in a window of its own, which is much smaller. */
  readonly limit?: 'login';
  /** Parameters of the query. */
  readonly query?: readonly Parameter[];
  /** The JSON body; absent for a route that takes none. */
  readonly body?: TSchema;
  /** In place of `body`, of a route that takes bytes: they are handed over as `request.bytes`. */
  readonly payload?: Payload;
  /** In place of `body`, of a route that takes a file as multipart/form-data: its handler reads the stream of the exchange. */
  readonly upload?: boolean;
  /** Whether its answers hold attachments, whose URLs are made absolute. */
  readonly holdsFiles?: boolean;
  /** Takes `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** The answers that are no refusals: status -> schema of the JSON body. */
  readonly answers: Readonly<Record<number, TSchema>>;
  /** Whether it answers with bytes instead of JSON to `Accept: application/octet-stream`, and with 204 where there are none. */
  readonly bytes?: boolean;
  /** Whether it answers with server-sent events to `Accept: text/event-stream`. */
  readonly stream?: boolean;
  /**
   * Takes `If-None-Match`, or on `write` `If-Match` as well, and gives an `ETag`. With `log` that is made of the position of the
   * log, before the handler is called: only for lists that never change without an event.
   */
  readonly conditions?: 'log' | 'read' | 'write';
  /** The refusals that are its own, besides those that every route has. */
  readonly errors: readonly ErrorCode[];
  /** Answers the request, or takes the exchange over and returns null. Throws `CollabError`. */
  readonly handle: (request: ApiRequest) => Promise<Answer | null>;
}

/** A body of bytes, or JSON that holds them. */
export interface Payload {
  /** The JSON form. */
  readonly schema: TSchema;
  /** Most bytes of a body of this type that this actor may send. */
  readonly limit: (actor: Actor, contentType: string) => number;
  /** The refusal of a larger one. */
  readonly tooLarge: (actor: Actor) => CollabError;
}

/** A parameter of the query, for the document. */
export interface Parameter {
  readonly name: string;
  readonly schema: TSchema;
}

/** What a handler answers with. */
export interface Answer {
  readonly status: number;
  /** JSON, unless `head` says otherwise; not sent with 204 and 304. */
  readonly body: string | Uint8Array;
  /** Content type and caching, in place of those of JSON. */
  readonly head?: Header;
  /** Headers that only this answer has. */
  readonly headers?: readonly Header[];
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
