import type { ChildProcess } from 'node:child_process';
import { type Message, readMessage } from './messages.ts';

/** One end of the message channel between two processes of a cluster. Messages arrive in the order they were sent. */
export interface ProcessChannel {
  /**
   * Sends a message without waiting. Once the channel is closed, messages are dropped.
   * @param sent called once the message has left this process or was dropped, so that the caller can bound what is
   *   queued
   */
  send(message: Message, sent?: () => void): void;
  /** Messages that arrive before the first listener are kept for it. Returns a function that removes the listener. */
  onMessage(listener: (message: Message) => void): () => void;
  /** Called once when either end closes; at once if the channel is closed already. */
  onClose(listener: () => void): void;
  /** Closes both ends. */
  close(): void;
}

/** The listeners of one end, shared by both kinds of channel. */
class ChannelListeners {
  readonly #messages = new Set<(message: Message) => void>();
  readonly #closes = new Set<() => void>();
  readonly #early: Message[] = [];
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  receive(raw: unknown): void {
    const message = readMessage(raw);
    if (message === null) return;
    if (this.#messages.size === 0) this.#early.push(message);
    for (const listener of this.#messages) listener(message);
  }

  onMessage(listener: (message: Message) => void): () => void {
    this.#messages.add(listener);
    for (const message of this.#early.splice(0)) listener(message);
    return () => this.#messages.delete(listener);
  }

  onClose(listener: () => void): void {
    if (this.#closed) listener();
    else this.#closes.add(listener);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const listener of this.#closes) listener();
    this.#closes.clear();
  }
}

/** The common part of `process` in a forked child and of `ChildProcess` in its parent. */
interface IpcEnd {
  readonly connected: boolean;
  send?(message: Message, sent: () => void): boolean;
  disconnect?(): void;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  prependOnceListener(event: 'disconnect', listener: () => void): unknown;
}

/**
 * What the child sends first. A worker of node:cluster receives messages before its own code can listen to them, and
 * they would be lost: the parent keeps its messages until then.
 */
const LISTENING = 'collab:listening';

/** The parent's end of the channel to a process it has forked. The child must call `childChannel`. */
export function parentChannel(child: ChildProcess): ProcessChannel {
  const channel = forkedChannel(child);
  let early: (() => void)[] | null = [];
  const sendAll = (): void => {
    const kept = early ?? [];
    early = null;
    for (const send of kept) send();
  };
  child.on('message', (raw) => raw === LISTENING && sendAll());
  channel.onClose(sendAll);
  return {
    ...channel,
    send(message, sent) {
      if (early === null) channel.send(message, sent);
      else early.push(() => channel.send(message, sent));
    },
  };
}

/** The child's end of the channel to its parent. Throws if this process was not forked. */
export function childChannel(): ProcessChannel {
  if (process.send === undefined) throw new Error('this process was not forked: it has no channel to a parent');
  const channel = forkedChannel(process);
  process.send(LISTENING);
  return channel;
}

function forkedChannel(end: IpcEnd): ProcessChannel {
  const listeners = new ChannelListeners();
  end.on('message', (raw) => listeners.receive(raw));
  // First of all listeners: in a worker, that of node:cluster ends the process.
  end.prependOnceListener('disconnect', () => listeners.close());
  return {
    send(message, sent) {
      // Without a callback, a channel that has just broken would emit 'error', which would end the process.
      if (end.connected) end.send?.(message, () => sent?.());
      else sent?.();
    },
    onMessage: (listener) => listeners.onMessage(listener),
    onClose: (listener) => listeners.onClose(listener),
    close() {
      if (end.connected) end.disconnect?.();
    },
  };
}

/** Both ends of a channel within one process. As between processes, messages are copied and arrive asynchronously. */
export function channelPair(): [ProcessChannel, ProcessChannel] {
  const one = new ChannelListeners();
  const other = new ChannelListeners();
  const close = (): void => {
    one.close();
    other.close();
  };
  return [pairEnd(one, other, close), pairEnd(other, one, close)];
}

function pairEnd(mine: ChannelListeners, theirs: ChannelListeners, close: () => void): ProcessChannel {
  return {
    send(message, sent) {
      const copy: unknown = structuredClone(message);
      setImmediate(() => {
        if (!theirs.closed) theirs.receive(copy);
        sent?.();
      });
    },
    onMessage: (listener) => mine.onMessage(listener),
    onClose: (listener) => mine.onClose(listener),
    close: () => setImmediate(close),
  };
}
