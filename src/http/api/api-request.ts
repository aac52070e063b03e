import type { Config } from '../../config/schema.ts';
import type { AuthenticatedAdmin } from '../../domain/admins/admin-sessions.ts';
import type { Actor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import type { Idempotency } from '../../domain/idempotency.ts';
import { type ListKind, type ListQuery, parseListQuery } from '../../domain/lists/list-query.ts';
import { invalidField } from '../../model/errors.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Header } from '../../net/response-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import type { ApiServices } from './services.ts';

const EMPTY = Buffer.alloc(0);

/** The parsed queries of lists that are requested without parameters. */
const defaultQueries = new Map<ListKind, ListQuery>();

/** A request on its way through the pipeline, and then as its handler sees it. */
export class ApiRequest {
  readonly services: ApiServices;
  readonly exchange: Exchange;
  /**
   * The headers of every response to this request, except content type and caching. Authentication adds those of CORS.
   */
  readonly headers: Header[];
  /** The backend or user that authenticated; null before that, and on a route for admins or the public. */
  caller: Actor | null = null;
  /** The session of the admin that authenticated; null on any other route. */
  adminSession: AuthenticatedAdmin | null = null;
  /** The parsed JSON body, not validated; undefined on a route that takes none. */
  body: unknown;
  /** The body on a route that takes bytes; empty on any other. */
  bytes: Buffer = EMPTY;
  /** Identifies repetitions of the request; null without `Idempotency-Key`. */
  idempotency: Idempotency = null;
  readonly #params: Readonly<Record<string, string>>;

  /** @param params the parameters of the path, still percent-encoded */
  constructor(services: ApiServices, exchange: Exchange, params: Readonly<Record<string, string>>, headers: Header[]) {
    this.services = services;
    this.exchange = exchange;
    this.headers = headers;
    this.#params = params;
  }

  /** The context, with the admin as operator on a route for admins. */
  get ctx(): Context {
    const { ctx } = this.services;
    return this.adminSession === null ? ctx : { ...ctx, operator: { kind: 'admin', id: this.adminSession.admin.id } };
  }

  get config(): Config {
    return this.services.config;
  }

  get head(): RequestHead {
    return this.exchange.head;
  }

  /** The actor of the request. Throws on a route for admins or the public. */
  get actor(): Actor {
    if (this.caller === null) throw new Error('a route for admins or the public has no actor');
    return this.caller;
  }

  /** The session of the admin. Throws on a route that is not for admins. */
  get admin(): AuthenticatedAdmin {
    if (this.adminSession === null) throw new Error('only a route for admins has an admin');
    return this.adminSession;
  }

  /** The parameters of the query, parsed anew at each access. */
  get search(): URLSearchParams {
    return new URLSearchParams(this.head.query);
  }

  /** As `TrustedProxies.baseUrl`. */
  baseUrl(): string {
    return this.services.proxies.baseUrl(this.exchange);
  }

  /** Whether the path has a parameter of this name. */
  hasParam(name: string): boolean {
    return this.#params[name] !== undefined;
  }

  /** A parameter of the path, decoded. Throws `invalid_request` if it is not percent-encoded UTF-8. */
  param(name: string): string {
    const raw = this.#params[name] ?? '';
    return raw.includes('%') ? decode(name, raw) : raw;
  }

  /** The query of a list. Throws as `parseListQuery`. */
  listQuery(list: ListKind): ListQuery {
    if (this.head.query !== '') return parseListQuery(this.search, list);
    let query = defaultQueries.get(list);
    if (query === undefined) {
      query = parseListQuery(new URLSearchParams(), list);
      defaultQueries.set(list, query);
    }
    return query;
  }
}

function decode(name: string, raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw invalidField(name, 'in the path must be percent-encoded UTF-8', raw);
  }
}
