import type { Config } from '../../config/schema.ts';
import type { SessionHolder } from '../../domain/admins/admin-sessions.ts';
import type { Actor, Context } from '../../domain/context.ts';
import type { Idempotency } from '../../domain/idempotency.ts';
import { type ListKind, type ListQuery, parseListQuery } from '../../domain/lists/list-query.ts';
import { CollabError } from '../../model/errors.ts';
import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';
import type { OpenStreams } from './open-streams.ts';
import type { RequestMeter } from '../core/request-meter.ts';
import type { UploadThrottle } from './upload-throttle.ts';

/** What a request has gathered on its way through the guards. */
export interface RequestParts {
  readonly ctx: Context;
  readonly config: Config;
  readonly exchange: Exchange;
  /** The parameters of the path, still percent-encoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Null on a route for admins or everybody. */
  readonly actor: Actor | null;
  /** Null on any but a route for admins. */
  readonly admin: SessionHolder | null;
  /** Of every answer to this request, but for content type and caching. */
  readonly headers: readonly Header[];
  readonly streams: OpenStreams;
  /** Where uploads take turns. */
  readonly lane: UploadThrottle;
  /** Null while nobody asks for measurements. */
  readonly meter: RequestMeter | null;
  /** The address of the server as this client knows it, without a slash at its end: `publicUrl`, or else that of the request; '' when its Host is no name. */
  readonly baseUrl: () => string;
  /** Looks at the credential once more. Rejects when it is not good any longer. */
  readonly renew: () => Promise<Actor>;
}

const NOTHING = Buffer.alloc(0);

const plainQueries = new Map<ListKind, ListQuery>();

/** A request that passed every guard, as its handler sees it. */
export class ApiRequest {
  /** The parsed JSON body, not validated; undefined on a route that takes none. */
  body: unknown;
  /** The body of a route that takes bytes; empty on any other. */
  bytes: Buffer = NOTHING;
  /** How the request may be repeated; null when it said nothing of it. */
  idempotency: Idempotency = null;
  readonly #parts: RequestParts;

  constructor(parts: RequestParts) {
    this.#parts = parts;
  }

  get ctx(): Context {
    return this.#parts.ctx;
  }

  get config(): Config {
    return this.#parts.config;
  }

  /** Who asks. Throws on a route for admins or everybody. */
  get actor(): Actor {
    if (this.#parts.actor === null) throw new Error('a route for admins or everybody has no actor');
    return this.#parts.actor;
  }

  /** The session of the admin who asks. Throws on any but a route for admins. */
  get admin(): SessionHolder {
    if (this.#parts.admin === null) throw new Error('only a route for admins has one');
    return this.#parts.admin;
  }

  /** The parts that only a handler needs which takes the exchange over. */
  get parts(): RequestParts {
    return this.#parts;
  }

  get search(): URLSearchParams {
    return new URLSearchParams(this.#parts.exchange.head.query);
  }

  /** A parameter of the path, decoded. Throws `invalid_request` when it is no percent-encoded UTF-8. */
  param(name: string): string {
    const raw = this.#parts.params[name] ?? '';
    return raw.includes('%') ? decode(name, raw) : raw;
  }

  /** The query of a list. Throws as `parseListQuery`. */
  listQuery(list: ListKind): ListQuery {
    if (this.#parts.exchange.head.query !== '') return parseListQuery(this.search, list);
    let plain = plainQueries.get(list);
    if (plain === undefined) {
      plain = parseListQuery(new URLSearchParams(), list);
      plainQueries.set(list, plain);
    }
    return plain;
  }
}

function decode(name: string, raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new CollabError('invalid_request', `${name} in the path must be percent-encoded UTF-8`);
  }
}
