import type { SocketLimits, SocketWriter } from './socket-writer.ts';

/**
 * Finds the slow sockets among the subscribers of a topic. The core does not report them on a publish, so all are
 * checked after every eighth of the backlog limit.
 */
export class BacklogCheck {
  readonly #limits: Pick<SocketLimits, 'maxBacklog'>;
  readonly #writers: () => Iterable<Pick<SocketWriter, 'checkBacklog'>>;
  #uncheckedChars = 0;

  /** @param writers the sockets that may be slow */
  constructor(limits: Pick<SocketLimits, 'maxBacklog'>, writers: () => Iterable<Pick<SocketWriter, 'checkBacklog'>>) {
    this.#limits = limits;
    this.#writers = writers;
  }

  /** Call it after each publication, with its characters. */
  published(chars: number): void {
    this.#uncheckedChars += chars;
    if (this.#uncheckedChars * 8 < this.#limits.maxBacklog) return;
    this.#uncheckedChars = 0;
    for (const writer of this.#writers()) writer.checkBacklog();
  }
}
