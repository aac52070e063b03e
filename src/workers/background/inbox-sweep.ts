import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import { sweepInbox } from '../../domain/notifications/removal.ts';
import { inboxOf, unescapeId } from '../../domain/records/partitions.ts';

/** Inboxes of an environment that one run looks at. */
const PER_RUN = 100;
/** Milliseconds after which the inboxes of an environment are looked at again: what is removed is months old. */
const AGAIN_MS = 3_600_000;

/**
 * Removes old notifications, a few inboxes of each environment per run, so that a million of them is no burden: each
 * costs one read of its oldest entry.
 */
export class InboxSweep {
  readonly #ctx: Context;
  /** The last inbox looked at, by environment. */
  readonly #positions = new Map<string, string>();
  /** When an environment is begun again, by `Clock.monotonic`. */
  readonly #dueAt = new Map<string, number>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Looks at the next inboxes of every environment; an hour after the last one it begins again. */
  async run(): Promise<void> {
    const now = this.#ctx.clock.monotonic();
    for (const { id } of await listEnvironments(this.#ctx)) {
      if (now < (this.#dueAt.get(id) ?? now)) continue;
      const prefix = inboxOf(id, '');
      const inboxes = await this.#ctx.store.partitions(prefix, { after: this.#positions.get(id), limit: PER_RUN });
      for (const inbox of inboxes) await sweepInbox(this.#ctx, id, unescapeId(inbox.slice(prefix.length)));
      const last = inboxes.at(-1);
      if (last !== undefined && inboxes.length === PER_RUN) {
        this.#positions.set(id, last);
        continue;
      }
      this.#positions.delete(id);
      this.#dueAt.set(id, now + AGAIN_MS);
    }
  }
}
