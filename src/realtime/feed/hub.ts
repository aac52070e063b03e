import { streamOf } from '../../domain/events/streams.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { CoreApp } from '../../net/core.ts';
import type { Store } from '../../ports/store.ts';
import type { SocketLimits } from '../socket/socket-writer.ts';
import { Feed, type FeedHost } from './feed.ts';

/** Delivers the committed events of every environment to the sockets of this worker. */
export class Hub implements FeedHost {
  readonly app: CoreApp;
  readonly store: Store;
  readonly limits: SocketLimits;
  /** The feeds that have subscribers, by the names of their streams. */
  readonly feeds = new Map<string, Feed>();
  readonly #unfollow: () => void;
  #topics = 0;

  constructor(app: CoreApp, store: Store, limits: SocketLimits) {
    this.app = app;
    this.store = store;
    this.limits = limits;
    this.#unfollow = store.follow((stream, event) => {
      if (event !== null) this.feeds.get(stream)?.deliver(event);
    });
  }

  /** Returns the feed of an environment. The caller must add a subscriber in the same event loop iteration. */
  feed(environment: Environment): Feed {
    const stream = streamOf(environment);
    let feed = this.feeds.get(stream);
    if (feed === undefined) {
      feed = new Feed(this, environment);
      this.feeds.set(stream, feed);
    }
    return feed;
  }

  forget(feed: Feed): void {
    if (this.feeds.get(feed.stream) === feed) this.feeds.delete(feed.stream);
  }

  nextTopic(): string {
    return `feed/${++this.#topics}`;
  }

  /** Stops following the log. */
  stop(): void {
    this.#unfollow();
  }
}
