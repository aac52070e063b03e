import type { Subscription } from '../../ports/bus.ts';
import type { TopicChanges } from '../../ports/bus-messages.ts';

/** A topic that this process has subscribed to. */
interface Topic {
  readonly listeners: Set<(text: string) => void>;
  readonly ready: Promise<void>;
  readonly onReady: () => void;
}

/**
 * The subscriptions of a process. Those that begin or end within one event loop iteration are sent to the relay as one
 * message.
 */
export class Topics {
  readonly #send: (changes: TopicChanges) => void;
  readonly #topics = new Map<string, Topic>();
  /** Topics whose first listener came, or whose last one left, since the last message. */
  readonly #changed = new Set<string>();
  /** The new topics of each message that is not answered yet, by its id. */
  readonly #unanswered = new Map<number, readonly Topic[]>();
  #lastId = 0;
  #isConnected = false;

  constructor(send: (changes: TopicChanges) => void) {
    this.#send = send;
  }

  /** Starts to send, or starts over with all topics: the relay is there, or another one that knows of none. */
  connect(): void {
    this.#isConnected = true;
    this.#unanswered.clear();
    for (const name of this.#topics.keys()) this.#changed.add(name);
    this.#flush();
  }

  /** Implements `Bus.subscribe`. */
  subscribe(name: string, listener: (text: string) => void): Subscription {
    const topic = this.#topics.get(name) ?? this.#add(name);
    // The same function may listen twice.
    const own = (text: string): void => listener(text);
    topic.listeners.add(own);
    return {
      ready: topic.ready,
      stop: () => {
        if (!topic.listeners.delete(own) || topic.listeners.size > 0) return;
        topic.onReady();
        this.#topics.delete(name);
        this.#change(name);
      },
    };
  }

  /** Passes a publication on to the listeners of its topic. */
  receive(name: string, text: string): void {
    for (const listener of this.#topics.get(name)?.listeners ?? []) listener(text);
  }

  /** Handles the answer of the relay to the message with this id. */
  answered(id: number): void {
    for (const { onReady } of this.#unanswered.get(id) ?? []) onReady();
    this.#unanswered.delete(id);
  }

  #add(name: string): Topic {
    let onReady = (): void => {};
    const ready = new Promise<void>((resolve) => (onReady = resolve));
    const topic: Topic = { listeners: new Set(), ready, onReady };
    this.#topics.set(name, topic);
    this.#change(name);
    return topic;
  }

  #change(name: string): void {
    this.#changed.add(name);
    if (this.#isConnected && this.#changed.size === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#changed.size === 0) return;
    const id = ++this.#lastId;
    const changed = [...this.#changed];
    this.#changed.clear();
    const subscribed = changed.filter((name) => this.#topics.has(name));
    const unsubscribed = changed.filter((name) => !this.#topics.has(name));
    this.#unanswered.set(
      id,
      subscribed.flatMap((name) => this.#topics.get(name) ?? []),
    );
    this.#send({ id, subscribed, unsubscribed });
  }
}
