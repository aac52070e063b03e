import { guarded } from '../emitter.ts';
import { type Channel, type Globals, type Locks, onPageEvents, type Unsubscribe } from '../platform.ts';
import { Leader } from './leader.ts';
import { type FromLeader, lockOf, type ToLeader } from './messages.ts';

/** A shared socket, as its hub sees it. */
export interface HubSocket {
  readonly id: string;
  readonly url: string;
  readonly protocols: string[];
  receive(text: string): void;
  closed(code: number, reason: string): void;
  /** The connection cannot be shared: the leader does not answer. */
  alone(): void;
}

/** Dependencies of a hub. */
export interface HubDeps {
  readonly page: Globals;
  readonly locks: Locks;
  readonly channel: Channel;
  readonly name: string;
  /** The hub has no socket any more, and cannot be used again. */
  readonly onEnd: () => void;
}

/** A socket and its position; null until it has its welcome. */
interface Entry {
  readonly socket: HubSocket;
  readonly release: () => void;
  seq: number | null;
}

/** How long a leader may take to answer, in milliseconds. */
const ANSWER_MS = 3_000;
/** After a message is sent, how long a leader may be quiet before it is asked whether it is there. */
const QUIET_MS = 1_000;

/**
 * The shared sockets of one page with the same name, and the page's connection to the leader: the tab that holds the
 * lock of that name. While this page holds the lock, it is the leader.
 */
export class Hub {
  readonly #deps: HubDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #ended = new AbortController();
  readonly #stopListening: Unsubscribe;
  #leader: Leader | null = null;
  /** The number of the leader that was heard last. */
  #leaderNumber = 0;
  #unanswered: ReturnType<typeof setTimeout> | undefined;

  constructor(deps: HubDeps) {
    this.#deps = deps;
    deps.channel.onmessage = ({ data }) => {
      const message = data as FromLeader | ToLeader;
      if (!('by' in message)) this.#leader?.receive(message);
      // While this page is the leader, messages of earlier leaders are ignored.
      else if (this.#leader === null) this.#receive(message);
    };
    // A page that is frozen or kept for "back" must not be the leader.
    this.#stopListening = onPageEvents(deps.page, ['pagehide', 'freeze'], () => this.#leave(1001, 'the page was left'));
    const { signal } = this.#ended;
    deps.locks.request(deps.name, { signal }, () => this.#lead(signal)).catch(() => undefined);
  }

  /** Opens a socket. */
  open(socket: HubSocket): void {
    const done = new AbortController();
    this.#entries.set(socket.id, { socket, release: () => done.abort(), seq: null });
    // The leader waits for this lock, which ends with the tab at the latest.
    this.#deps.locks
      .request(lockOf(this.#deps.name, socket.id), { signal: done.signal }, () => {
        this.#ask(socket);
        return aborted(done.signal);
      })
      .catch(() => {
        if (this.#drop(socket.id) !== undefined) socket.alone();
      });
    this.#expectAnswer();
  }

  send(id: string, text: string): void {
    this.#post({ type: 'send', from: id, text });
    if (this.#leader !== null) return;
    this.#unanswered ??= setTimeout(() => {
      this.#unanswered = undefined;
      this.#post({ type: 'hello' });
      this.#expectAnswer();
    }, QUIET_MS);
  }

  /** Forgets a socket, which its page has closed. */
  close(id: string): void {
    if (!this.#entries.has(id)) return;
    this.#post({ type: 'close', from: id });
    this.#drop(id);
  }

  #lead(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    const { page, locks, name } = this.#deps;
    const emit = (message: FromLeader): void => {
      this.#deps.channel.postMessage(message);
      // Never while a socket of this page is calling.
      queueMicrotask(() => this.#receive(message));
    };
    this.#leader = new Leader({
      page,
      locks,
      name,
      previousNumber: this.#leaderNumber,
      emit,
      onIdle: () => this.#endIfUnused(),
    });
    return aborted(signal);
  }

  #receive(message: FromLeader): void {
    if (message.by < this.#leaderNumber) return;
    clearTimeout(this.#unanswered);
    this.#unanswered = undefined;
    if (message.by > this.#leaderNumber) this.#follow(message.by);
    switch (message.type) {
      case 'here':
        return;
      case 'welcome': {
        const entry = this.#entries.get(message.to);
        if (entry === undefined) return;
        entry.seq = message.seq;
        for (const text of message.texts) deliver(entry, text);
        return;
      }
      case 'frame':
        for (const entry of this.#entries.values()) {
          if (message.to === null ? !isUndelivered(entry, message.seq) : !message.to.includes(entry.socket.id))
            continue;
          if (message.seq !== null) entry.seq = message.seq;
          deliver(entry, message.text);
        }
        return;
      case 'close':
        for (const id of message.to) this.#drop(id)?.closed(message.code, message.reason);
    }
  }

  /** There is a new leader: sockets of another one are closed, those that wait are announced to it. */
  #follow(leaderNumber: number): void {
    this.#leaderNumber = leaderNumber;
    for (const { socket, seq } of this.#entries.values()) {
      if (seq === null) this.#ask(socket);
      else this.#drop(socket.id)?.closed(1001, 'the tab with the connection was left');
    }
  }

  #ask({ id, url, protocols }: HubSocket): void {
    if (this.#entries.has(id)) this.#post({ type: 'open', from: id, url, protocols });
  }

  #post(message: ToLeader): void {
    if (this.#leader === null) this.#deps.channel.postMessage(message);
    else this.#leader.receive(message);
  }

  #expectAnswer(): void {
    if (this.#leader === null) this.#unanswered ??= setTimeout(() => this.#noAnswer(), ANSWER_MS);
  }

  #noAnswer(): void {
    this.#unanswered = undefined;
    for (const { socket, seq } of this.#entries.values()) {
      this.close(socket.id);
      if (seq === null) socket.alone();
      else socket.closed(1001, 'the tab with the connection does not answer');
    }
  }

  #leave(code: number, reason: string): void {
    for (const { socket } of this.#entries.values()) {
      this.close(socket.id);
      socket.closed(code, reason);
    }
    this.#end();
  }

  /** Removes a socket. Returns it, if it was there. */
  #drop(id: string): HubSocket | undefined {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    entry?.release();
    this.#endIfUnused();
    return entry?.socket;
  }

  #endIfUnused(): void {
    if (this.#entries.size === 0 && (this.#leader?.isIdle ?? true)) this.#end();
  }

  #end(): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    clearTimeout(this.#unanswered);
    this.#stopListening();
    this.#leader?.close(1001, 'the tab with the connection was left');
    this.#leader = null;
    this.#deps.channel.close();
    this.#deps.onEnd();
  }
}

/** Whether a frame for all is for this socket: it has its welcome, and is not beyond that position. */
function isUndelivered({ seq }: Entry, frameSeq: number | null): boolean {
  return seq !== null && (frameSeq === null || frameSeq > seq);
}

function deliver({ socket }: Entry, text: string): void {
  guarded(() => socket.receive(text));
}

/** Resolves when a signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve());
    if (signal.aborted) resolve();
  });
}
