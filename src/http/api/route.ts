import type { TSchema } from 'typebox';
import type { Actor } from '../../domain/access/actor.ts';
import type { Page } from '../../domain/lists/list-query.ts';
import type { CollabError, ErrorCode } from '../../model/errors.ts';
import type { ApiRequest } from './api-request.ts';
import type { Header } from '../../net/response-headers.ts';

/** A route of the API: how it is served, and what the OpenAPI document says about it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path below `/api/v1`, with parameters as `:name`. */
  readonly path: string;
  /** Must not change: client libraries are generated from it. */
  readonly operationId: string;
  readonly summary: string;
  /** Longer text for the document, if the summary is not enough. */
  readonly description?: string;
  /**
   * The credential that the route requires: `secret` is `Authorization: Bearer sk_…`, `user` a publishable key and a
   * user token, `either` one or the other, `admin` `Authorization: Bearer adm_…`, `public` none.
   */
  readonly credential: 'secret' | 'user' | 'either' | 'admin' | 'public';
  /**
   * Whether a secret key may be sent instead of the credential `user`, to impersonate the user in the parameter
   * `userId`.
   */
  readonly allowsImpersonation?: boolean;
  /**
   * What the credential must allow; `own` is a change of what belongs to one user alone, which users of every role may
   * make, and of secret keys those of the scope `full`. It is checked before the body is read; not checked on a route
   * for admins or the public.
   */
  readonly access: 'read' | 'create' | 'change' | 'moderate' | 'own';
  /** Whether it answers with a list, which caches may store if they revalidate it for each use. */
  readonly list?: boolean;
  /** The rate window that requests count in, if it is not the default one. */
  readonly rateLimit?: 'login';
  /** The parameters of the query. */
  readonly query?: readonly Parameter[];
  /** The schema of the JSON body; absent on a route that takes none. */
  readonly body?: TSchema;
  /** Instead of `body`, on a route that takes bytes, which its handler finds in `request.bytes`. */
  readonly payload?: Payload;
  /**
   * Instead of `body`, on a route that takes any text: its largest size in bytes. Its handler finds the bytes in
   * `request.bytes`.
   */
  readonly maxTextBytes?: number;
  /** Instead of `body`, on a route that takes a file as multipart/form-data: its handler reads the body as a stream. */
  readonly upload?: boolean;
  /** Whether its responses contain attachments, whose URLs have to be made absolute. */
  readonly hasFileUrls?: boolean;
  /** Whether it takes `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** The successful responses: status -> schema of the JSON body. */
  readonly responses: Readonly<Record<number, TSchema>>;
  /**
   * Whether it answers `Accept: application/octet-stream` with bytes instead of JSON, and with 204 if there are none.
   */
  readonly bytes?: boolean;
  /** Whether it answers `Accept: text/event-stream` with server-sent events. */
  readonly stream?: boolean;
  /**
   * Whether it sends an `ETag` and takes `If-None-Match`, and with `write` also `If-Match`. With `log`, the pipeline
   * makes the ETag of the position of the log before it calls the handler: only for lists that never change without an
   * event.
   */
  readonly conditions?: 'log' | 'read' | 'write';
  /** The refusals that are specific to the route, besides those of every route. */
  readonly errors: readonly ErrorCode[];
  /**
   * Returns the response; or null if it has answered through the exchange itself, or the client has gone. Rejects with
   * `CollabError`.
   */
  readonly handle: (request: ApiRequest) => Promise<ApiResponse | null>;
}

/** A body of bytes, or of JSON that contains them. */
export interface Payload {
  /** The schema of the JSON form. */
  readonly schema: TSchema;
  /** The largest body of this Content-Type that the actor may send, in bytes. */
  readonly limit: (actor: Actor, contentType: string) => number;
  /** The refusal of a larger body. */
  readonly tooLarge: (actor: Actor) => CollabError;
}

/** A parameter of the query, as the document describes it. */
export interface Parameter {
  readonly name: string;
  readonly schema: TSchema;
  /** An example value, if it is not that of all parameters with this name. */
  readonly example?: unknown;
}

/** The response of a handler. */
export interface ApiResponse {
  readonly status: number;
  /** JSON, unless `head` says otherwise. Not sent with 204 and 304. */
  readonly body: string | Uint8Array;
  /** Content type and caching, if they are not those of JSON. */
  readonly head?: Header;
  /** Headers that are specific to this response. */
  readonly headers?: readonly Header[];
  /** The cursor of the list's next page, which is sent as `Link`; null on the last page. */
  readonly nextCursor?: string | null;
  /** Whether this repeats the response to an earlier request with the same `Idempotency-Key`. */
  readonly replayed?: boolean;
}

/** 200 with JSON text. */
export function ok(body: string | Uint8Array): ApiResponse {
  return { status: 200, body };
}

/** 200 with a page of a list. */
export function page(list: Page): ApiResponse {
  return { status: 200, body: list.text, nextCursor: list.nextCursor };
}
