import type { ChildProcess } from 'node:child_process';
import { type Message, readMessage } from './messages.ts';

/** One end of the line between two processes of a cluster. Messages arrive in the order they were sent. */
export interface ProcessChannel {
  /**
   * Sends without waiting; once the line is closed the message is dropped.
   * @param sent called once the message has left this process, or was dropped: the way to bound what waits
   */
  send(message: Message, sent?: () => void): void;
  /** Messages that came before the first listener are kept for it. Returns the way to stop. */
  onMessage(listener: (message: Message) => void): () => void;
  /** Called once when either end has closed, or at once when that has happened already. */
  onClose(listener: () => void): void;
  close(): void;
}

/** The listeners of one end, shared by every kind of line. */
class Listeners {
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

/** What `process` in a forked child and a `ChildProcess` in its parent have in common. */
interface IpcEnd {
  readonly connected: boolean;
  send?(message: Message, sent: () => void): boolean;
  disconnect?(): void;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  once(event: 'disconnect', listener: () => void): unknown;
}

/** The parent's end of the line to a process it has forked. */
export function parentChannel(child: ChildProcess): ProcessChannel {
  return forkedChannel(child);
}

/** The child's end, in a process that was forked with a line to its parent. */
export function childChannel(): ProcessChannel {
  if (process.send === undefined) throw new Error('this process was not forked: it has no line to a parent');
  return forkedChannel(process);
}

function forkedChannel(end: IpcEnd): ProcessChannel {
  const listeners = new Listeners();
  end.on('message', (raw) => listeners.receive(raw));
  end.once('disconnect', () => listeners.close());
  return {
    send(message, sent) {
      // With a callback a line that has just broken is no event 'error', which would end the process.
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

/** Two ends of a line inside one process: messages are copied and arrive in a later turn, as between processes. */
export function channelPair(): [ProcessChannel, ProcessChannel] {
  const one = new Listeners();
  const other = new Listeners();
  const close = (): void => {
    one.close();
    other.close();
  };
  return [twinEnd(one, other, close), twinEnd(other, one, close)];
}

function twinEnd(mine: Listeners, theirs: Listeners, close: () => void): ProcessChannel {
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
