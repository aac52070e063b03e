import type { CollabInbox } from '../../client/inbox/inbox.ts';
import type { CollabRoom, NewComment } from '../../client/room/room.ts';
import type { RoomComment, RoomSnapshot, RoomThread } from '../../client/room/snapshot.ts';
import type { SessionState } from '../../client/session/options.ts';
import type { CollabSession } from '../../client/session/session.ts';
import type { StreamEvent } from '../../model/frames.ts';
import type { Position } from '../../model/thread.ts';
import type { Language } from '../strings/language.ts';
import type { AppHost } from './app-host.ts';
import { Deletions } from './deletions.ts';
import { Drafts } from './drafts.ts';
import { findThreads } from './filters.ts';
import { readLink } from './link.ts';
import { type Person, personOf } from './people.ts';
import { asProblem, explain } from './problems.ts';
import { ReadMarks } from './read-marks.ts';
import { RoomStorage } from './storage.ts';
import { Toasts } from './toasts.ts';
import { initialView, LIST_STEP, type View } from './view.ts';

/** How long `openThread` waits for a thread that the loaded room does not have, in milliseconds. */
const ARRIVES_MS = 10_000;

/** The part of a session that the widget uses. */
export type WidgetSession = Pick<
  CollabSession,
  'getSnapshot' | 'subscribe' | 'on' | 'room' | 'files' | 'inbox' | 'users' | 'searchUsers' | 'reconnect' | 'fetch'
>;

/** The state of a widget that shows one room as one user. */
export class App {
  readonly session: WidgetSession;
  readonly room: CollabRoom;
  readonly toasts: Toasts;
  readonly deletions: Deletions;
  readonly drafts = new Drafts(() => this.storage);
  readonly host: AppHost;
  language: Language;
  view: View;
  snapshot: RoomSnapshot;
  state: SessionState;
  storage: RoomStorage;
  /** Tells screen readers what others do; null until its code is loaded. */
  announcements: {
    follow(before: readonly RoomThread[], after: readonly RoomThread[], userId: string | null): void;
  } | null = null;
  #marks: ReadMarks;
  readonly #key: string;
  /** Notifications that the server was asked to mark as read: a refusal is not tried again with every event. */
  #asked = new Set<string>();
  /** The thread to open once the room has it; until when, by `performance.now`, if the room is loaded. */
  #wanted: { readonly target: Parameters<App['openThread']>; readonly until: number } | null = null;
  #people = new Map<string, Person>();
  #users: RoomSnapshot['users'] = {};
  readonly #ends: (() => void)[] = [];

  constructor(session: WidgetSession, roomId: string, publishableKey: string, language: Language, host: AppHost) {
    this.session = session;
    this.room = session.room(roomId);
    this.language = language;
    this.host = host;
    this.#key = publishableKey;
    this.snapshot = this.room.getSnapshot();
    this.state = session.getSnapshot();
    this.storage = new RoomStorage(publishableKey, roomId, this.state.userId);
    this.view = { ...initialView, hidesPins: this.storage.read('hidden') === true };
    this.#marks = new ReadMarks(this.storage, new Date().toISOString());
    this.toasts = new Toasts(() => host.changed());
    this.deletions = new Deletions(this);
  }

  /** Subscribes to the room and the connection. */
  start(): void {
    this.#ends.push(
      this.session.subscribe(() => this.#sessionChanged()),
      this.room.subscribe(() => this.#roomChanged()),
      this.session.on('event', (event) => this.#showRejection(event)),
    );
    const { inbox } = this;
    if (inbox !== null) this.#ends.push(inbox.subscribe(() => this.#inboxChanged()));
    const onVisible = (): void => this.#markSeen();
    document.addEventListener('visibilitychange', onVisible);
    this.#ends.push(() => document.removeEventListener('visibilitychange', onVisible));
    this.#sessionChanged();
    this.#roomChanged();
  }

  /** Ends the subscriptions, and does what was only delayed. */
  stop(): void {
    this.deletions.flush();
    this.toasts.clear();
    for (const end of this.#ends.splice(0)) end();
  }

  /** Calls `end` when the app stops. */
  onStop(end: () => void): void {
    this.#ends.push(end);
  }

  /** The inbox of the user; null where the server has none. */
  get inbox(): CollabInbox | null {
    return this.session.inbox.getSnapshot().status === 'unavailable' ? null : this.session.inbox;
  }

  /** Connects and loads again what could not be shown. */
  retry(): void {
    if (this.state.status === 'closed') this.session.reconnect();
    if (this.snapshot.status === 'failed') this.room.reload();
  }

  /** The reason why the session ended or the room cannot be shown, in words; null if there is none. */
  get problem(): string | null {
    const { status, error, retryAt } = this.state;
    const cause = (status === 'closed' ? error : null) ?? this.snapshot.error;
    if (cause !== null) return explain(cause, this.language);
    if (status !== 'reconnecting') return status === 'offline' ? this.language.text(status) : null;
    if (error?.code === 'rate_limited')
      return this.language.text('errorRateRetry', {
        seconds: Math.max(1, Math.ceil(((retryAt ?? 0) - Date.now()) / 1000)),
      });
    return error === null || error.code === 'network' ? this.language.text(status) : explain(error, this.language);
  }

  /** Whether there is nothing to show because the room could not be loaded. */
  get unloaded(): boolean {
    return this.snapshot.error !== null && this.snapshot.threads.length === 0;
  }

  get userId(): string | null {
    return this.state.userId;
  }

  /** Whether the user may take part; assumed until the server says it. */
  get mayWrite(): boolean {
    return this.state.role !== 'viewer';
  }

  /** Whether the user may edit and delete a comment. */
  mayChange({ userId }: RoomComment): boolean {
    return this.state.role === 'moderator' || (this.mayWrite && userId === this.userId);
  }

  /** Changes what is shown, and tells the page of a thread that is opened or closed by it. */
  show(change: Partial<View>): void {
    const before = this.view.open?.threadId;
    const isOtherList = change.filter !== undefined || change.query !== undefined || change.panel !== undefined;
    this.view = {
      ...this.view,
      ...(isOtherList ? { listLength: LIST_STEP } : {}),
      ...(change.panel === undefined ? {} : { side: null }),
      ...change,
    };
    this.host.changed();
    const after = this.view.open?.threadId;
    if (before === after) return;
    if (before !== undefined) this.host.dispatch('collab-thread-close', { threadId: before });
    if (after !== undefined) this.host.dispatch('collab-thread-open', { threadId: after });
  }

  /** All threads that are not about to be deleted, newest first, with the comments that are not. */
  get threads(): readonly RoomThread[] {
    return this.deletions.without(this.snapshot.threads);
  }

  /** The threads of the panel. */
  get listed(): RoomThread[] {
    const { filter, query } = this.view;
    return findThreads(this.threads, { filter, text: query }, this.userId, (userId) => this.person(userId).name);
  }

  thread(threadId: string | null): RoomThread | null {
    return this.threads.find(({ id }) => id === threadId) ?? null;
  }

  person(userId: string): Person {
    const known = this.#people.get(userId);
    if (known !== undefined) return known;
    const person = personOf(userId, this.snapshot.users[userId]);
    this.#people.set(userId, person);
    return person;
  }

  isUnread(thread: RoomThread): boolean {
    if (this.#marks.isUnread(thread, this.userId)) return true;
    return this.inbox?.getSnapshot().items.some((item) => item.threadId === thread.id && item.readAt === null) ?? false;
  }

  get unreadCount(): number {
    return this.threads.filter((thread) => !thread.resolved && this.isUnread(thread)).length;
  }

  /**
   * Opens a thread, and marks it as read; once the room is loaded, if it is not yet. Waits for one that the room does not
   * have, such as one that a backend has just created, until the user opens or closes something else.
   */
  openThread(threadId: string, commentId: string | null = null): void {
    const thread = this.thread(threadId);
    const isReady = this.snapshot.status === 'ready';
    this.#wanted =
      isReady && thread !== null
        ? null
        : { target: [threadId, commentId], until: isReady ? performance.now() + ARRIVES_MS : Infinity };
    if (thread === null) return;
    this.show({ open: { threadId, commentId }, pin: threadId, composing: null, cluster: null, placing: null });
    this.#asked = new Set();
    this.#markRead(thread);
  }

  /** Opens or closes the inbox, in the place of the panel. Does nothing where the server has none. */
  showInbox(open: boolean): void {
    if (this.inbox !== null) this.show({ panel: open, side: open ? 'inbox' : null });
  }

  /** Shows or hides all pins but that of the open thread, until the user changes it in this browser. */
  hidePins(hidden: boolean): void {
    this.storage.write('hidden', hidden || null);
    this.show({ hidesPins: hidden });
  }

  /** Lets the user choose a place for a new thread; a user who may only read gets a message. */
  startComment(): void {
    this.#wanted = null;
    if (this.mayWrite) this.show({ placing: { threadId: null }, open: null, composing: null, cluster: null });
    else this.toasts.add({ kind: 'info', text: this.language.text('readOnly') });
  }

  /** Closes the open thread, the field of a new one, and the list of a cluster. */
  close(): void {
    this.#wanted = null;
    this.#closeViews();
  }

  #closeViews(): void {
    this.show({ open: null, composing: null, cluster: null });
  }

  /** Creates a thread and opens it at once. Resolves with whether the server accepted it. */
  async createThread(position: Position, written: NewComment): Promise<boolean> {
    const id = `th_${crypto.randomUUID()}`;
    this.#wanted = null;
    const creating = this.attempt(() => this.room.createThread({ ...written, id, position }));
    this.snapshot = this.room.getSnapshot();
    this.show({ composing: null, open: this.thread(id) === null ? null : { threadId: id, commentId: null } });
    const thread = await creating;
    if (thread !== null) this.host.dispatch('collab-thread-create', { threadId: thread.id });
    return thread !== null;
  }

  /** Runs a write. Says in words why it failed, or that a moderator has to approve it. Returns its result, or null. */
  async attempt<T>(write: () => Promise<T>): Promise<T | null> {
    try {
      const record = await write();
      if ((record as { readonly status?: string } | undefined)?.status === 'held')
        this.toasts.add({ kind: 'info', text: this.language.text('held') });
      return record;
    } catch (thrown) {
      this.report(thrown);
      return null;
    }
  }

  /** Says in words what went wrong. */
  report(thrown: unknown): void {
    const { code, message } = asProblem(thrown);
    if (code === 'aborted') return;
    const text = explain(thrown, this.language);
    // Without a connection its cause is said, as long as it lasts.
    if (this.problem !== null && text === this.language.text('errorConnection')) this.show({ dismissed: false });
    else this.toasts.add({ kind: 'problem', text });
    this.host.dispatch('collab-error', { code, message });
  }

  /** Follows the fragment of the page's address, if it leads to a thread of the room. */
  followLink(fragment: string): void {
    const target = readLink(fragment);
    if (target === null || this.snapshot.status !== 'ready') return;
    const thread = this.thread(target.threadId);
    if (thread === null) return this.showGone();
    if (thread.resolved) this.show({ filter: 'resolved' });
    this.openThread(target.threadId, target.commentId);
  }

  /** Says that something was deleted meanwhile, and offers what the user had typed there to be copied. */
  showGone(typed = ''): void {
    const action = { label: this.language.text('copyText'), run: () => void this.copy(typed, 'textCopied') };
    this.toasts.add({
      kind: 'problem',
      text: this.language.text('errorGone'),
      ...(typed.trim() === '' ? {} : { action }),
    });
  }

  /** Copies a text and confirms it. Without access to the clipboard, shows the text so that the user can copy it. */
  async copy(text: string, done: 'linkCopied' | 'textCopied'): Promise<void> {
    let message = this.language.text(done);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      message = text;
    }
    this.toasts.add({ kind: 'info', text: message });
  }

  /** The comment with this id in any thread. */
  comment(commentId: string): RoomComment | null {
    for (const { comments } of this.snapshot.threads) {
      const found = comments.find(({ id }) => id === commentId);
      if (found !== undefined) return found;
    }
    return null;
  }

  #sessionChanged(): void {
    const { userId } = this.state;
    const [previous, problem] = [this.state, this.problem];
    this.state = this.session.getSnapshot();
    if (this.state.userId !== userId) {
      this.storage = new RoomStorage(this.#key, this.room.roomId, this.state.userId);
      this.#marks = new ReadMarks(this.storage, new Date().toISOString());
      this.show({ hidesPins: this.storage.read('hidden') === true });
    }
    if (this.state.status !== previous.status) {
      // The last attempt says the same as the end of the session.
      if (this.problem !== problem) this.show({ dismissed: false });
      this.host.dispatch('collab-status', { status: this.state.status, reason: this.state.reason });
    }
    this.host.changed();
  }

  #roomChanged(): void {
    const before = this.snapshot;
    this.snapshot = this.room.getSnapshot();
    if (this.snapshot.users !== this.#users) this.#people = new Map();
    this.#users = this.snapshot.users;
    if (before.status !== 'ready' && this.snapshot.status === 'ready') {
      this.host.dispatch('collab-ready', { threads: this.snapshot.threads.length });
      if (this.#wanted === null) this.followLink(location.hash);
      else this.openThread(...this.#wanted.target);
    } else if (before.status === 'ready') {
      this.announcements?.follow(before.threads, this.snapshot.threads, this.userId);
      this.#openArrived();
    }
    const { open } = this.view;
    if (open !== null && this.thread(open.threadId) === null) this.#closeGone(open.threadId, before);
    this.#markSeen();
    this.host.changed();
  }

  /** Opens the thread that is waited for, if the room has it now and it comes soon enough not to disturb. */
  #openArrived(): void {
    if (this.#wanted === null || this.snapshot.status !== 'ready') return;
    const { target, until } = this.#wanted;
    if (performance.now() > until) this.#wanted = null;
    else if (this.thread(target[0]) !== null) this.openThread(...target);
  }

  /** Closes the open thread, which is no longer there. `createThread` reports one that the server refused to create. */
  #closeGone(threadId: string, before: RoomSnapshot): void {
    const wasThere = before.threads.some(({ id, pending }) => id === threadId && pending !== 'create');
    this.#closeViews();
    if (wasThere && this.snapshot.status === 'ready') this.showGone(this.drafts.read(threadId)?.text);
  }

  /** Tells the author of content that a moderator has rejected, or that is gone with its thread, why. */
  #showRejection(event: StreamEvent): void {
    if (event.type !== 'moderation.rejected' || event.roomId !== this.room.roomId || event.userId !== this.userId)
      return;
    const { cause, reason } = event.data;
    if (cause === 'deleted') this.toasts.add({ kind: 'problem', text: this.language.text('heldGone') });
    else if (reason) this.toasts.add({ kind: 'problem', text: this.language.text('rejected', { reason }) });
  }

  #inboxChanged(): void {
    this.#markSeen();
    this.host.changed();
  }

  /** Marks the open thread as read while the user can see it. */
  #markSeen(): void {
    const open = this.thread(this.view.open?.threadId ?? null);
    if (open !== null && document.visibilityState === 'visible') this.#markRead(open);
  }

  #markRead(thread: RoomThread): void {
    const hadNew = this.#marks.markRead(thread);
    const unread =
      this.inbox
        ?.getSnapshot()
        .items.filter((item) => item.threadId === thread.id && item.readAt === null && !this.#asked.has(item.id)) ?? [];
    for (const { id } of unread) this.#asked.add(id);
    if (unread.length > 0) void this.attempt(() => this.session.inbox.markRead(unread.map(({ id }) => id)));
    if (hadNew) this.host.changed();
  }
}
