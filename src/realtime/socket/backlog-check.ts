import type { SocketLimits, SocketWriter } from './socket-writer.ts';

/**
 * Finds the slow sockets among the subscribers of a topic. The core does not report them on a publish, so all are
 * checked after every eighth of the backlog limit.
 */
export class BacklogCheck {
  readonly #limits: Pick<SocketLimits, 'maxBacklog'>;
  #uncheckedChars = 0;

  constructor(limits: Pick<SocketLimits, 'maxBacklog'>) {
    this.#limits = limits;
  }

  /** Call it after each publication, with its characters and the sockets that may be slow. */
  published(chars: number, writers: () => Iterable<Pick<SocketWriter, 'checkBacklog'>>): void {
    this.#uncheckedChars += chars;
    if (this.#uncheckedChars * 8 < this.#limits.maxBacklog) return;
    this.#uncheckedChars = 0;
    for (const writer of writers()) writer.checkBacklog();
  }
}
