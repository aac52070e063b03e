import type { CursorPosition, FrameActor, PresenceRow, RoomFrame } from '../../model/frames.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Emitter } from '../emitter.ts';
import { CollabError } from '../errors.ts';
import { byteLength, type Requests } from '../session/requests.ts';
import type { RoomEvents } from './room.ts';
import type { TypingUser } from './snapshot.ts';

/** How often `typing` is repeated while the user types; the server forgets it after 6 s. */
const TYPING_REPEAT_MS = 3_000;
/** How long after the last key the user counts as no longer typing. */
const TYPING_IDLE_MS = 5_000;
/** The shortest time between two cursors. */
const CURSOR_MS = 50;

/** The longest state that the server takes, in bytes of JSON. */
const MAX_STATE_BYTES = 4_096;

/** Dependencies of the presence of a room. */
export interface PresenceDeps {
  readonly roomId: string;
  readonly requests: Requests;
  readonly events: Emitter<RoomEvents>;
  /** The own user; null before the first connection. */
  readonly userId: () => string | null;
  readonly changed: () => void;
}

/** The users in a room and what they do there. Nothing of it is stored. */
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
    requests
      .request('room.join', this.#state === null ? { roomId } : { roomId, state: this.#state })
      .catch(() => undefined);
  }

  /** Leaves the room at once. */
  leave(): void {
    this.setTyping(null, false);
    this.#post('room.leave');
    clearTimeout(this.#cursorTimer);
    this.#cursorTimer = undefined;
    this.#rows = [];
    this.#typing = [];
  }

  receive(frame: RoomFrame): void {
    switch (frame.type) {
      case 'presence.snapshot':
        return this.#setRows(frame.data.items);
      case 'presence.joined':
      case 'presence.updated':
        return this.#put(frame.data);
      case 'presence.left':
        return this.#setRows(this.#rows.filter(({ userId }) => userId !== frame.data.userId));
      case 'typing':
        return this.#setTypingOf(frame.actor?.userId, frame.data.threadId, frame.data.typing);
      default:
        if (frame.actor) this.#emit(frame, frame.actor);
    }
  }

  #emit(frame: RoomFrame, actor: FrameActor): void {
    const { events } = this.#deps;
    const { userId, connectionId } = actor;
    if (frame.type === 'cursor') events.emit('cursor', { userId, connectionId, position: frame.data });
    else if (frame.type === 'room.broadcast') events.emit('broadcast', { actor, data: frame.data });
    else if (frame.type === 'p2p.signal')
      events.emit('signal', { actor, from: frame.data.from, data: frame.data.data });
  }

  setState(state: PresenceState): void {
    if (byteLength(JSON.stringify(state)) > MAX_STATE_BYTES)
      throw new CollabError(
        'invalid_request',
        `The presence state is larger than ${MAX_STATE_BYTES} bytes (4 KiB) of JSON.`,
      );
    this.#state = state;
    this.#post('presence.update', { state });
  }

  setTyping(threadId: string | null, typing: boolean): void {
    clearTimeout(this.#typingEnd);
    const own = this.#ownTyping;
    if (own && (!typing || own.threadId !== threadId)) {
      this.#post('typing', { threadId: own.threadId, typing: false });
      this.#ownTyping = null;
    }
    if (!typing) return;
    if (!this.#ownTyping || Date.now() - this.#ownTyping.sentAt >= TYPING_REPEAT_MS) {
      this.#post('typing', { threadId, typing: true });
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
    if (!this.#cursor) return;
    this.#post('cursor', this.#cursor);
    this.#cursor = null;
    this.#cursorTimer = setTimeout(() => this.#sendLatestCursor(), CURSOR_MS);
  }

  #post(type: string, data: object = {}): void {
    const { roomId, requests } = this.#deps;
    requests.post(type, { roomId, ...data });
  }

  #setRows(rows: readonly PresenceRow[]): void {
    this.#rows = rows;
    this.#typing = this.#typing.filter(({ userId }) => rows.some((row) => row.userId === userId));
    this.#deps.changed();
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
