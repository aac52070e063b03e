import type { Attachment } from '../../model/attachment.ts';
import type { Comment, CommentCreate, CommentPatch } from '../../model/comment.ts';
import type { Metadata } from '../../model/metadata.ts';
import type { ModerationItem, RejectionInput, Report, ReportCreate } from '../../model/moderation.ts';
import type {
  Notification,
  NotificationKind,
  NotificationSettings,
  SubscriptionAction,
  SubscriptionState,
} from '../../model/notification.ts';
import type { Presence } from '../../model/presence.ts';
import type { Reaction, ReactionCreate } from '../../model/reaction.ts';
import type { Role } from '../../model/role.ts';
import type { ReadRoom, Room } from '../../model/room.ts';
import type { Thread, ThreadCreate, ThreadPatch } from '../../model/thread.ts';
import type { User, UserPut, UserSummary } from '../../model/user.ts';
import { CollabError } from '../errors.ts';
import { eventList, type EventList } from './event-pages.ts';
import { pages, type PageOptions } from './pages.ts';
import { type Call, type CallOptions, type ClientOptions, Transport } from './transport.ts';

/** A thread with its comments. */
export type ThreadWithComments = Thread & { readonly comments: readonly Comment[] };
/** A user as backends see it. */
export type BackendUser = User & { readonly online: boolean };
/** An item of the moderation queue, with the content that it is about as it would be, or as it is now. */
export type QueueItem = Omit<ModerationItem, 'thread' | 'reports' | 'keyId' | 'via'> & {
  /** Of an edit, the comment as it is now. */
  readonly before: Comment | null;
  readonly thread: Thread | null;
  readonly reportCount: number;
  /** At most 100 of the reports. */
  readonly reports: readonly Report[];
};
/** Content that is held or was rejected, as its author sees it. */
export type HeldContent = Pick<
  ModerationItem,
  'id' | 'kind' | 'state' | 'roomId' | 'threadId' | 'commentId' | 'createdAt' | 'decidedAt' | 'rejection'
> & { readonly comment: Comment };
/** The choice of a user for a thread. */
export interface Subscription {
  readonly threadId: string;
  readonly userId: string;
  readonly state: SubscriptionState;
}
/** Changes of notification settings; channels and kinds that are absent keep their values. */
export type NotificationSettingsChange = Readonly<
  Record<string, { readonly [Kind in NotificationKind]?: boolean | undefined }>
>;
type Decided = Promise<{ readonly id: string; readonly state: 'approved' | 'rejected' }>;
type Deleted = Promise<{ readonly deleted: true }>;
type ListOptions = PageOptions & CallOptions;
/** `userId` is the user who deletes it, for events; the backend itself if absent. */
type DeleteOptions = CallOptions & { readonly userId?: string };

/** The claims of a new token; see `POST /users/:userId/tokens`. */
export interface TokenRequest {
  /** Seconds. */
  readonly ttl?: number | undefined;
  readonly name?: string | undefined;
  readonly avatarUrl?: string | undefined;
  readonly role?: Role | undefined;
  /** Room ids and `prefix*`. */
  readonly rooms?: readonly string[] | undefined;
}

/** The result of a write of a shared state. */
export interface P2pStateWritten {
  readonly roomId: string;
  readonly version: number;
  readonly sizeBytes: number;
  readonly updatedAt: string | null;
  /** Of a merge only: false if the state contained the update already, so that an earlier write made `version`. */
  readonly changed?: boolean;
}

/** A shared state of a room with its bytes, as base64. */
export interface P2pState extends Omit<P2pStateWritten, 'changed'> {
  readonly state: string | null;
  readonly contentType: string;
  readonly updatedBy: string | null;
}

const at = (text: TemplateStringsArray, ...ids: readonly string[]): string =>
  text.reduce((path, part, n) => `${path}${encodeURIComponent(ids[n - 1] ?? '')}${part}`);

/**
 * The REST API for backends, with a secret key. Lists are async iterables that read page after page:
 *
 * ```ts
 * const collab = new CollabClient({ serverUrl: 'https://comments.example.com', secretKey: 'sk_…' });
 * for await (const thread of collab.threads.list('docs/intro', { resolved: false })) console.log(thread.id);
 * await collab.threads.create('docs/intro', { userId: 'ci-bot', body: 'The build failed' });
 * ```
 *
 * A call is repeated up to `maxRetries` times after 429, 5xx, `write_conflict` and an attempt without a response (a
 * network failure or `timeout`), but not if `Retry-After` is longer than 60 s, nor after `aborted`. Each repetition
 * waits for a growing random delay, and at least for `Retry-After`. A POST is repeated with the same `Idempotency-Key`.
 * A repeated DELETE that finds nothing, after one whose response was lost, has succeeded. Failures are `CollabError`s.
 */
export class CollabClient {
  readonly #transport: Transport;

  /** @throws {CollabError} `invalid_request` if an option is of the wrong form */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  readonly rooms = {
    list: (options?: ListOptions): AsyncIterable<Room> => this.#list('/rooms', options),
    /**
     * The room and its threads, with `comments` if asked for. A room that nobody has used yet is empty, and its times
     * are null.
     */
    get: (
      roomId: string,
      { comments = false, ...options }: CallOptions & { readonly comments?: boolean } = {},
    ): Promise<{ readonly room: ReadRoom; readonly threads: readonly ThreadWithComments[] }> =>
      this.#call('GET', at`/rooms/${roomId}`, { query: { include: comments ? 'comments' : undefined }, options }),
    update: (roomId: string, change: { readonly metadata: Metadata }, options?: CallOptions): Promise<Room> =>
      this.#one('room', 'PATCH', at`/rooms/${roomId}`, { body: change, options }),
    delete: (roomId: string, options?: CallOptions): Deleted => this.#call('DELETE', at`/rooms/${roomId}`, { options }),
    presence: async (roomId: string, options?: CallOptions): Promise<readonly Presence[]> =>
      (await this.#call<{ items: Presence[] }>('GET', at`/rooms/${roomId}/presence`, { options })).items,
    p2pState: (roomId: string, options?: CallOptions): Promise<P2pState> =>
      this.#call('GET', at`/rooms/${roomId}/p2p/state`, { options }),
    /** `state` as base64. With `merge: 'yjs'` it is merged into the stored one. */
    putP2pState: (
      roomId: string,
      state: string,
      { merge, ...options }: CallOptions & { readonly merge?: 'yjs' } = {},
    ): Promise<P2pStateWritten> =>
      this.#call('PUT', at`/rooms/${roomId}/p2p/state`, { body: { state }, query: { merge }, options }),
    clearP2pState: (roomId: string, options?: CallOptions): Deleted =>
      this.#call('DELETE', at`/rooms/${roomId}/p2p/state`, { options }),
  };

  readonly threads = {
    list: (roomId: string, options?: ListOptions): AsyncIterable<Thread> =>
      this.#list(at`/rooms/${roomId}/threads`, options),
    create: (roomId: string, thread: ThreadCreate, options?: CallOptions): Promise<ThreadWithComments> =>
      this.#one('thread', 'POST', at`/rooms/${roomId}/threads`, { body: thread, options }),
    get: (
      threadId: string,
      options?: CallOptions,
    ): Promise<{ readonly thread: Thread; readonly comments: readonly Comment[] }> =>
      this.#call('GET', at`/threads/${threadId}`, { options }),
    update: (
      threadId: string,
      change: ThreadPatch,
      options?: CallOptions,
    ): Promise<{ readonly threadId: string; readonly resolved: boolean }> =>
      this.#call('PATCH', at`/threads/${threadId}`, { body: change, options }),
    delete: (threadId: string, { userId, ...options }: DeleteOptions = {}): Deleted =>
      this.#call('DELETE', at`/threads/${threadId}`, { query: { userId }, options }),
    /** Changes what the thread notifies a user of. */
    setSubscription: (
      threadId: string,
      choice: { readonly userId: string; readonly action: SubscriptionAction },
      options?: CallOptions,
    ): Promise<Subscription> => this.#call('POST', at`/threads/${threadId}/subscription`, { body: choice, options }),
  };

  readonly comments = {
    list: (threadId: string, options?: ListOptions): AsyncIterable<Comment> =>
      this.#list(at`/threads/${threadId}/comments`, options),
    create: (threadId: string, comment: CommentCreate, options?: CallOptions): Promise<Comment> =>
      this.#one('comment', 'POST', at`/threads/${threadId}/comments`, { body: comment, options }),
    get: (commentId: string, options?: CallOptions): Promise<Comment> =>
      this.#one('comment', 'GET', at`/comments/${commentId}`, { options }),
    update: (commentId: string, change: CommentPatch, options?: CallOptions): Promise<Comment> =>
      this.#one('comment', 'PATCH', at`/comments/${commentId}`, { body: change, options }),
    delete: (commentId: string, { userId, ...options }: DeleteOptions = {}): Deleted =>
      this.#call('DELETE', at`/comments/${commentId}`, { query: { userId }, options }),
    /**
     * Reports it to the moderators, for a user or for the key itself. A second report by the same user returns the
     * first one.
     */
    report: (commentId: string, report: ReportCreate, options?: CallOptions): Promise<Report> =>
      this.#one('report', 'POST', at`/comments/${commentId}/report`, { body: report, options }),
  };

  readonly reactions = {
    add: (commentId: string, reaction: ReactionCreate, options?: CallOptions): Promise<Reaction> =>
      this.#one('reaction', 'POST', at`/comments/${commentId}/reactions`, { body: reaction, options }),
    remove: (reactionId: string, { userId, ...options }: DeleteOptions = {}): Deleted =>
      this.#call('DELETE', at`/reactions/${reactionId}`, { query: { userId }, options }),
  };

  readonly users = {
    list: (options?: ListOptions): AsyncIterable<BackendUser> => this.#list('/users', options),
    get: (userId: string, options?: CallOptions): Promise<BackendUser> =>
      this.#one('user', 'GET', at`/users/${userId}`, { options }),
    /** Creates the user, or changes the given fields. */
    put: (userId: string, fields: UserPut, options?: CallOptions): Promise<BackendUser> =>
      this.#one('user', 'PUT', at`/users/${userId}`, { body: fields, options }),
    /** Erases the personal data; what the user wrote stays. */
    delete: (userId: string, options?: CallOptions): Deleted => this.#call('DELETE', at`/users/${userId}`, { options }),
    /** A token with which a browser connects as the user. */
    createToken: (
      userId: string,
      token: TokenRequest = {},
      options?: CallOptions,
    ): Promise<{ readonly token: string; readonly expiresAt: string }> =>
      this.#call('POST', at`/users/${userId}/tokens`, { body: token, options }),
    /** Names and pictures by id, at most 100. */
    lookup: async (ids: readonly string[], options?: CallOptions): Promise<Readonly<Record<string, UserSummary>>> =>
      (await this.#call<{ users: Record<string, UserSummary> }>('GET', '/user-lookup', { query: { id: ids }, options }))
        .users,
    /** Content of the user that is held for moderation, or was rejected within 30 days. */
    held: (userId: string, options?: ListOptions): AsyncIterable<HeldContent> =>
      this.#list(at`/users/${userId}/held`, options),
  };

  readonly notifications = {
    /** The inbox of a user, newest first; with `unread` only those that are unread, or only the others. */
    list: (userId: string, options?: ListOptions): AsyncIterable<Notification> =>
      this.#list(at`/users/${userId}/notifications`, options),
    /** How many are unread. */
    unreadCount: async (userId: string, options?: CallOptions): Promise<number> =>
      (
        await this.#call<{ unreadCount: number }>('GET', at`/users/${userId}/notifications`, {
          query: { limit: 1 },
          options,
        })
      ).unreadCount,
    /** Marks at most 200, or all, as read. Returns how many are unread then. */
    markRead: (
      userId: string,
      which: { readonly ids: readonly string[] } | { readonly all: true },
      options?: CallOptions,
    ): Promise<number> =>
      this.#one('unreadCount', 'POST', at`/users/${userId}/notifications/read`, { body: which, options }),
    settings: (userId: string, options?: CallOptions): Promise<NotificationSettings> =>
      this.#call('GET', at`/users/${userId}/notification-settings`, { options }),
    putSettings: (
      userId: string,
      change: NotificationSettingsChange,
      options?: CallOptions,
    ): Promise<NotificationSettings> =>
      this.#call('PUT', at`/users/${userId}/notification-settings`, { body: change, options }),
  };

  readonly moderation = {
    /** The queue, oldest first: what is held, or with `state` what is `reported` or `decided`. */
    list: (options?: ListOptions): AsyncIterable<QueueItem> => this.#list('/moderation', options),
    get: (itemId: string, options?: CallOptions): Promise<QueueItem> =>
      this.#one('item', 'GET', at`/moderation/${itemId}`, { options }),
    /** Publishes what is held, or dismisses the reports. */
    approve: (itemId: string, options?: CallOptions): Decided =>
      this.#call('POST', at`/moderation/${itemId}/approve`, { options }),
    /** Removes what is held, or deletes the reported comment. The author can read the reason. */
    reject: (itemId: string, rejection: RejectionInput, options?: CallOptions): Decided =>
      this.#call('POST', at`/moderation/${itemId}/reject`, { body: rejection, options }),
  };

  readonly events = {
    /**
     * The stored events after a position (0 if absent): a page of 100, or `limit`, when awaited, all up to the newest
     * when iterated.
     */
    list: ({
      since = 0,
      limit,
      ...options
    }: CallOptions & { readonly since?: number; readonly limit?: number } = {}): EventList =>
      eventList((at) => this.#call('GET', '/events', { query: { since: at, limit }, options }), since),
  };

  /**
   * Uploads a file for a user, whose quotas count. A comment of any author may name it in `attachmentIds`. Rejects with
   * `invalid_request` without `userId`.
   */
  async upload(file: Blob, filename: string, choice: CallOptions & { readonly userId: string }): Promise<Attachment> {
    // JavaScript can leave it out.
    const { userId, ...options }: Partial<typeof choice> = { ...choice };
    if (!userId)
      throw new CollabError('invalid_request', 'userId is missing: name the user who uploads the file, as { userId }');
    const form = new FormData();
    form.append('file', file, filename);
    return this.#call('POST', '/upload', { form, query: { userId }, options });
  }

  /** Credentials for TURN servers, for a user. */
  turnCredentials(
    options: CallOptions & { readonly ttl?: number; readonly userId?: string } = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#call('GET', '/turn-credentials', { query: { ttl: options.ttl, userId: options.userId }, options });
  }

  /**
   * Any other request, with the same retries and errors. `call` is one object: `method` and `path` (below `/api/v1`,
   * percent-encoded), and what it needs of `query`, `body` (sent as JSON), `form`, `headers` and `options`. Rejects
   * with `invalid_request` for anything else.
   *
   * ```ts
   * await collab.request({ method: 'GET', path: '/user-lookup', query: { q: 'ann' } });
   * ```
   */
  async request<T>(call: Call): Promise<T> {
    // JavaScript can pass the two side by side.
    const { method, path }: Partial<Call> = { ...call };
    if (typeof method !== 'string' || typeof path !== 'string' || !path.startsWith('/')) {
      throw new CollabError(
        'invalid_request',
        "request takes one object, such as { method: 'GET', path: '/rooms' }; path begins with /",
      );
    }
    return this.#transport.json(call);
  }

  #call<T>(method: Call['method'], path: string, rest: Omit<Call, 'method' | 'path'>): Promise<T> {
    return this.#transport.json({ method, path, ...rest });
  }

  async #one<T>(name: string, method: Call['method'], path: string, rest: Omit<Call, 'method' | 'path'>): Promise<T> {
    return (await this.#call<Record<string, T>>(method, path, rest))[name] as T;
  }

  #list<T>(path: string, { signal, ...options }: ListOptions = {}): AsyncIterable<T> {
    return pages<T>((query) => this.#call('GET', path, { query, options: { signal } }), options);
  }
}
