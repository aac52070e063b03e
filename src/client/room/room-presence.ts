import type { CursorPosition, PresenceRow, RoomFrame } from '../../model/frames.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Emitter } from '../emitter.ts';
import type { Requests } from '../session/requests.ts';
import type { RoomEvents } from './room.ts';
import type { TypingUser } from './snapshot.ts';

/** How often `typing` is repeated while the user types; the server forgets it after 6 s. */
const TYPING_REPEAT_MS = 3_000;
/** How long after the last key the user counts as no longer typing. */
const TYPING_IDLE_MS = 5_000;
/** The shortest time between two cursors. */
const CURSOR_MS = 50;

/** What presence of a room needs. */
export interface PresenceDeps {
  readonly roomId: string;
  readonly requests: Requests;
  readonly events: Emitter<RoomEvents>;
  /** The own user; null before the first connection. */
  readonly userId: () => string | null;
  readonly changed: () => void;
}

/** Who is in a room and what they do there: nothing of it is stored. */
export class RoomPresence {
  readonly #deps: PresenceDeps;
  #rows: readonly PresenceRow[] = [];
  #typing: readonly TypingUser[] = [];
  #state: PresenceState | null = null;
  #ownTyping: { readonly threadId: string | null; readonly sentAt: number } | null = null;
  #typingEnd: ReturnType<typeof setTimeout> | undefined;
  #cursor: CursorPosition | null = null;
  #cursorTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
  }

  /** In the order in which they joined. */
  get rows(): readonly PresenceRow[] {
    return this.#rows;
  }

  get typing(): readonly TypingUser[] {
    return this.#typing;
  }

  /** Joins the room on a new connection. Refusals leave the room without presence. */
  join(): void {
    const { roomId, requests } = this.#deps;
    this.#ownTyping = null;
    requests.request('room.join', this.#state === null ? { roomId } : { roomId, state: this.#state }).catch(() => undefined);
  }

  /** Leaves the room at once. */
  leave(): void {
    this.setTyping(null, false);
    this.#deps.requests.post('room.leave', { roomId: this.#deps.roomId });
    clearTimeout(this.#cursorTimer);
    this.#cursorTimer = undefined;
    this.#rows = [];
    this.#typing = [];
  }

  receive(frame: RoomFrame): void {
    switch (frame.type) {
      case 'presence.snapshot':
        this.#rows = frame.data.items;
        this.#typing = this.#typing.filter(({ userId }) => this.#rows.some((row) => row.userId === userId));
        return this.#deps.changed();
      case 'presence.joined':
      case 'presence.updated':
        return this.#put(frame.data);
      case 'presence.left':
        this.#rows = this.#rows.filter(({ userId }) => userId !== frame.data.userId);
        this.#typing = this.#typing.filter(({ userId }) => userId !== frame.data.userId);
        return this.#deps.changed();
      case 'typing':
        return this.#setTypingOf(frame.actor?.userId, frame.data.threadId, frame.data.typing);
      case 'cursor':
        if (frame.actor !== undefined) this.#deps.events.emit('cursor', { userId: frame.actor.userId, connectionId: frame.actor.connectionId, position: frame.data });
        return;
      case 'room.broadcast':
        if (frame.actor !== undefined) this.#deps.events.emit('broadcast', { actor: frame.actor, data: frame.data });
        return;
      case 'p2p.signal':
        if (frame.actor !== undefined) this.#deps.events.emit('signal', { actor: frame.actor, from: frame.data.from, data: frame.data.data });
    }
  }

  setState(state: PresenceState): void {
    this.#state = state;
    this.#deps.requests.post('presence.update', { roomId: this.#deps.roomId, state });
  }

  setTyping(threadId: string | null, typing: boolean): void {
    clearTimeout(this.#typingEnd);
    const { roomId, requests } = this.#deps;
    const own = this.#ownTyping;
    if (own !== null && (!typing || own.threadId !== threadId)) {
      requests.post('typing', { roomId, threadId: own.threadId, typing: false });
      this.#ownTyping = null;
    }
    if (!typing) return;
    if (this.#ownTyping === null || Date.now() - this.#ownTyping.sentAt >= TYPING_REPEAT_MS) {
      requests.post('typing', { roomId, threadId, typing: true });
      this.#ownTyping = { threadId, sentAt: Date.now() };
    }
    this.#typingEnd = setTimeout(() => this.setTyping(threadId, false), TYPING_IDLE_MS);
  }

  sendCursor(position: CursorPosition): void {
    this.#cursor = position;
    if (this.#cursorTimer !== undefined) return;
    this.#sendLatestCursor();
  }

  #sendLatestCursor(): void {
    this.#cursorTimer = undefined;
    if (this.#cursor === null) return;
    this.#deps.requests.post('cursor', { roomId: this.#deps.roomId, ...this.#cursor });
    this.#cursor = null;
    this.#cursorTimer = setTimeout(() => this.#sendLatestCursor(), CURSOR_MS);
  }

  #put(row: PresenceRow): void {
    const at = this.#rows.findIndex(({ userId }) => userId === row.userId);
    this.#rows = at < 0 ? [...this.#rows, row] : this.#rows.map((other, index) => (index === at ? row : other));
    this.#deps.changed();
  }

  #setTypingOf(userId: string | undefined, threadId: string | null, typing: boolean): void {
    if (userId === undefined || userId === this.#deps.userId()) return;
    const others = this.#typing.filter((one) => one.userId !== userId || one.threadId !== threadId);
    this.#typing = typing ? [...others, { userId, threadId }] : others;
    this.#deps.changed();
  }
}
