import { quote } from '../connection.ts';
import { sqlState } from '../faults.ts';
import type { Link } from '../link.ts';

/** Milliseconds until a transaction of notifications must be committed. */
const NOTIFY_MS = 5_000;

/** SQLSTATE of notifications for which the queue of the server has no room. */
export const QUEUE_FULL = '54000';

/** A notification to send. */
export interface Notification {
  readonly channel: string;
  readonly payload: string;
}

interface Batch {
  readonly notifications: Notification[];
  readonly sent: Promise<void>;
}

/**
 * Sends notifications, in their order: one transaction at a time, because PostgreSQL commits those with notifications
 * one after another. What is to be sent meanwhile is the next one.
 */
export class Notifier {
  readonly #link: Link;
  #last: Promise<void> = Promise.resolve();
  #waiting: Batch | undefined;

  constructor(link: Link) {
    this.#link = link;
  }

  /**
   * Resolves once the notifications are committed. Rejects if it is unknown whether they are; they are not sent again.
   */
  send(notifications: readonly Notification[]): Promise<void> {
    if (this.#waiting === undefined) {
      const batch: Batch = { notifications: [], sent: this.#last.then(() => this.#commit(batch)) };
      this.#waiting = batch;
      this.#last = batch.sent.catch(() => {});
    }
    this.#waiting.notifications.push(...notifications);
    return this.#waiting.sent;
  }

  /** Closes the connection once everything has been sent, or could not be. */
  async close(): Promise<void> {
    await this.#last;
    this.#link.close();
  }

  async #commit({ notifications }: Batch): Promise<void> {
    this.#waiting = undefined;
    const connection = await this.#link.connect(NOTIFY_MS);
    const statements = notifications.map(({ channel, payload }) => `notify ${channel}, ${quote(payload)}`);
    const commit = async (): Promise<void> => void (await connection.run(statements.join(';'), NOTIFY_MS));
    try {
      await commit();
    } catch (error) {
      if (sqlState(error) !== QUEUE_FULL) throw error;
      // What everybody has read is only removed after a notification that found room, and by this question: without it,
      // a queue that was full would stay so when its last reader has gone on.
      await connection.run('select pg_notification_queue_usage()', NOTIFY_MS);
      await commit();
    }
  }
}
