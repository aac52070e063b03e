import { quote } from '../connection.ts';
import { INCARNATION_COLUMNS, incarnationOf } from './identity.ts';
import type { Query } from './query-batch.ts';

/** What a look for events has found. */
export interface Look {
  /** What was visible to it. */
  readonly snapshot: Snapshot;
  /** As `INCARNATION` gives it. */
  readonly incarnation: string;
  /** The streams that a transaction has changed which was not visible before: the last position, null for an end. */
  readonly changed: readonly { readonly stream: string; readonly last: number | null }[];
}

/** Which transactions were visible at a moment: `xmin:xmax:xip_list` of `pg_current_snapshot`. */
export class Snapshot {
  readonly #next: string;
  readonly #running: readonly string[];

  constructor(text: string) {
    const [, next = '1', running = ''] = text.split(':');
    this.#next = next;
    this.#running = running === '' ? [] : running.split(',');
  }

  /** SQL: whether the transaction in a column was not visible. */
  hides(column: string): string {
    const later = `${column} >= ${quote(this.#next)}::xid8`;
    if (this.#running.length === 0) return later;
    return `(${later} or ${column} = any('{${this.#running.join()}}'::xid8[]))`;
  }
}

/** Looks for the streams that have changed since a snapshot. One statement, so that all of it is of one moment. */
export const lookQuery: Query<Snapshot, Look> = {
  sql: ([since = new Snapshot('')]) =>
    `select pg_current_snapshot(), ${INCARNATION_COLUMNS}, s.stream, s.last_seq, s.ended
      from collab.meta m left join collab.streams s on ${since.hides('s.commit')} where m.name = 'epoch'`,
  answers: (rows) => {
    const [snapshot, ...incarnation] = rows[0]?.slice(0, 4) ?? [];
    const changed = rows.flatMap(([, , , , stream, last, ended]) =>
      stream === null || stream === undefined ? [] : [{ stream, last: ended === 't' ? null : Number(last) }],
    );
    return [{ snapshot: new Snapshot(snapshot ?? ''), incarnation: incarnationOf(incarnation), changed }];
  },
};
