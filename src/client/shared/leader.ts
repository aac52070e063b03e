import type { ServerFrame } from '../../model/frames.ts';
import type { Globals, Locks } from '../platform.ts';
import { identityOf, tokenOf } from './identity.ts';
import { type FromLeader, lockOf, type ToLeader } from './messages.ts';
import { SharedRequests } from './requests.ts';
import { positionOf, ReplayBuffer } from './replay-buffer.ts';
import { Upstream } from './upstream.ts';

/** A message of the leader without its number. */
type Message = FromLeader extends infer M ? (M extends FromLeader ? Omit<M, 'by'> : never) : never;

/** Dependencies of a leader. */
export interface LeaderDeps {
  readonly page: Globals;
  readonly locks: Locks;
  readonly name: string;
  /** The number of the last leader that this tab has heard; 0 if none. */
  readonly previousNumber: number;
  /** Sends a message to all tabs, this one included. */
  readonly emit: (message: FromLeader) => void;
  /** The last socket has gone. */
  readonly onIdle: () => void;
}

/** A shared socket of any tab. */
interface Tab {
  readonly id: string;
  readonly url: string;
  readonly protocols: string[];
  /** Whether it has its welcome. */
  isOpen: boolean;
  /** Ends the wait for the lock of the socket. */
  readonly gone: AbortController;
}

/** How long to wait for the final messages of a closed tab, in milliseconds. */
const FINAL_MESSAGE_WAIT_MS = 1_000;

/**
 * The tab that has the connection: opens it for the first socket, gives all the events to all of them, and its own
 * answers to each (docs/decisions/0056).
 */
export class Leader {
  readonly #deps: LeaderDeps;
  /** A later leader has a larger number. The clock alone is not enough: it may be coarse, or be set back. */
  readonly #number: number;
  readonly #tabs = new Map<string, Tab>();
  #upstream: Upstream | null = null;
  #opener: Tab | null = null;
  #stream: ReplayBuffer | null = null;
  #requests: SharedRequests | null = null;

  constructor(deps: LeaderDeps) {
    this.#deps = deps;
    this.#number = Math.max(Date.now() + Math.random(), deps.previousNumber + 1);
    this.#emit({ type: 'here' });
  }

  get isIdle(): boolean {
    return this.#tabs.size === 0;
  }

  receive(message: ToLeader): void {
    switch (message.type) {
      case 'hello':
        return this.#emit({ type: 'here' });
      case 'open':
        return this.#open(message);
      case 'send':
        return this.#send(message.from, message.text);
      case 'close':
        return this.#forget(message.from);
    }
  }

  /** Closes the connection, and all sockets with this code. */
  close(code: number, reason: string): void {
    this.#disconnect();
    const to = [...this.#tabs.keys()];
    if (to.length > 0) this.#emit({ type: 'close', to, code, reason });
    for (const { gone } of this.#tabs.values()) gone.abort();
    this.#tabs.clear();
    this.#deps.onIdle();
  }

  #open({ from, url, protocols }: ToLeader & { readonly type: 'open' }): void {
    this.#emit({ type: 'here' });
    if (this.#tabs.has(from)) return;
    this.#upstream?.check();
    const tab: Tab = { id: from, url, protocols, isOpen: false, gone: new AbortController() };
    this.#tabs.set(from, tab);
    const forget = (): void => void setTimeout(() => this.#forget(from), FINAL_MESSAGE_WAIT_MS);
    this.#deps.locks.request(lockOf(this.#deps.name, from), { signal: tab.gone.signal }, forget).catch(() => undefined);
    if (this.#stream === null) this.#connect();
    else this.#begin(tab, this.#stream);
  }

  #begin(tab: Tab, stream: ReplayBuffer): void {
    tab.isOpen = true;
    this.#emit({ type: 'welcome', to: tab.id, ...stream.startAt(tab.url) });
  }

  #send(from: string, text: string): void {
    if (this.#tabs.get(from)?.isOpen !== true || this.#opener === null) return;
    const token = this.#requests?.send(from, text);
    // The other tabs opened with what the old token said.
    if (typeof token === 'string' && readIdentity(token) !== identityOf(tokenOf(this.#opener.protocols)))
      this.close(1012, 'the token has changed');
  }

  #forget(id: string): void {
    const tab = this.#tabs.get(id);
    if (tab === undefined) return;
    tab.gone.abort();
    this.#tabs.delete(id);
    this.#requests?.leave(id);
    if (!this.isIdle) return;
    this.#disconnect();
    this.#deps.onIdle();
  }

  #connect(): void {
    const [first] = this.#tabs.values();
    if (this.#upstream !== null || first === undefined) return;
    this.#opener = first;
    try {
      this.#upstream = new Upstream(this.#deps.page, first.url, first.protocols, {
        onFrame: (frame, text) => this.#receive(frame, text),
        onClose: (code, reason) => this.#lost(code, reason),
      });
    } catch (error) {
      this.close(1006, String(error));
    }
  }

  #disconnect(): void {
    this.#requests?.end();
    this.#upstream?.close();
    this.#upstream = null;
    this.#stream = null;
    this.#requests = null;
  }

  #lost(code: number, reason: string): void {
    // Only the token of the first tab was refused; another one may have a better one.
    const refused = code === 4401 && this.#stream === null ? this.#opener : null;
    if (refused === null) return this.close(code, reason);
    this.#disconnect();
    this.#emit({ type: 'close', to: [refused.id], code, reason });
    this.#forget(refused.id);
    this.#connect();
  }

  #receive(frame: ServerFrame, text: string): void {
    switch (frame.type) {
      case 'welcome':
        return this.#welcomed(frame);
      case 'ok':
        return this.#requests?.answered(frame, frame.id);
      case 'error':
        if (frame.id !== undefined) return this.#requests?.answered(frame, frame.id);
        return this.#frame(text, this.#stream === null && this.#opener !== null ? [this.#opener.id] : null);
      case 'token.expiring':
        // One new token is enough.
        return this.#frame(
          text,
          [...this.#tabs.values()].flatMap(({ id, isOpen }) => (isOpen ? [id] : [])).slice(0, 1),
        );
      case 'ping':
        return this.#frame(text, null);
      default:
        if ('seq' in frame) {
          this.#stream?.add(frame.seq, text);
          return this.#frame(text, null, frame.seq);
        }
        return this.#frame(text, [...(this.#requests?.members.of(frame.roomId) ?? [])]);
    }
  }

  #welcomed({ data }: ServerFrame & { readonly type: 'welcome' }): void {
    if (this.#upstream === null || this.#opener === null) return;
    this.#stream = new ReplayBuffer(data, positionOf(this.#opener.url).since);
    this.#requests = new SharedRequests(this.#upstream, data, (to, text) => this.#frame(text, to));
    for (const tab of this.#tabs.values()) this.#begin(tab, this.#stream);
  }

  #frame(text: string, to: readonly string[] | null, seq: number | null = null): void {
    if (to?.length !== 0) this.#emit({ type: 'frame', to, seq, text });
  }

  #emit(message: Message): void {
    this.#deps.emit({ ...message, by: this.#number } as FromLeader);
  }
}

function readIdentity(token: string): string | null {
  try {
    return identityOf(token);
  } catch {
    return null;
  }
}
