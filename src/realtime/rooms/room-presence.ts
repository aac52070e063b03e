import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import {
  listMemberships,
  membershipOf,
  partialOf,
  type PresentUser,
  type Profile,
  profileOf,
} from '../../domain/rooms/presence.ts';
import { CollabError } from '../../model/errors.ts';
import { wireText } from '../../net/wire-text.ts';
import type { Logger } from '../../observability/log.ts';
import { MAX_REPLY_BYTES } from '../socket/socket-writer.ts';
import type { Member } from './member.ts';
import type { RoomAudience } from './room-audience.ts';
import { renderRoomFrame } from './room-frame.ts';
import { RoomView } from './room-view.ts';

/** Least time between two refreshes, in milliseconds: changes within it are sent together. */
const TICK_MS = 50;
/** Interval at which all memberships are read again, in milliseconds: messages may be lost and workers may die. */
const REFRESH_MS = 5_000;

/** A member that waits for its snapshot. */
interface SnapshotRequest {
  readonly member: Member;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** The room whose presence is sent, and what is needed for it. */
export interface RoomPresenceOptions {
  readonly ctx: Context;
  readonly log: Logger;
  /** Key of the room in shared memory. */
  readonly key: string;
  readonly environmentId: string;
  readonly roomId: string;
  /** Receives the changes. */
  readonly audience: RoomAudience;
  /** Called when a user has left. */
  readonly onLeft: (userId: string) => void;
}

/**
 * Keeps the members of one room on this worker informed about the users in it (decision 6).
 *
 * Shared memory holds the memberships. A message from another worker names one that has changed, and this reads its
 * current record. So messages may arrive late, repeatedly or in any order: no record replaces a newer one. A lost
 * message is repaired when all memberships are read again.
 */
export class RoomPresence {
  readonly #options: RoomPresenceOptions;
  readonly #view = new RoomView();
  readonly #profiles = new Map<string, Profile>();
  /** Users whose profile must be read again. */
  readonly #staleProfiles = new Set<string>();
  /** Connections whose membership must be read again. */
  readonly #changed = new Set<string>();
  #requests: SnapshotRequest[] = [];
  #refreshes: Promise<void> = Promise.resolve();
  #refreshPlanned = false;
  #refreshedAt = -TICK_MS;
  /** Whether the next refresh must read all memberships. */
  #readAll = true;
  /** When to read all memberships again, by `Clock.monotonic`. */
  #readAllDue = 0;

  constructor(options: RoomPresenceOptions) {
    this.#options = options;
  }

  /** Whether a connection was in the room at the last refresh. */
  hasConnection(connectionId: string): boolean {
    return this.#view.hasConnection(connectionId);
  }

  /**
   * Sends a member the users in the room, itself included, and from then on the changes. Resolves once the snapshot is
   * sent or the member has left; rejects if the snapshot cannot be built.
   */
  snapshot(member: Member): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ member, resolve, reject });
      this.#refresh();
    });
  }

  /** Reads the profile of a user again if the user is in the room. */
  profileChanged(userId: string): void {
    if (!this.#view.has(userId)) return;
    this.#staleProfiles.add(userId);
    this.#view.invalidate(userId);
    this.#refresh();
  }

  /** Must be called once changes are announced. Those before were missed, if anything was read already. */
  subscribed(): void {
    if (!this.#readAll) this.membershipChanged(null);
  }

  /** Must be called when the membership of a connection was written or deleted; null stands for any connection. */
  membershipChanged(connectionId: string | null): void {
    if (connectionId === null) this.#readAll = true;
    else this.#changed.add(connectionId);
    this.#refresh();
  }

  /**
   * Reads the memberships of users again whose grace period may have ended, and all memberships when that is due. `now`
   * is `Clock.monotonic`.
   */
  tick(now: number): void {
    const due = now >= this.#readAllDue;
    if (due) this.#readAll = true;
    const expired = this.#view.expired(now);
    for (const connectionId of expired) this.#changed.add(connectionId);
    if (due || expired.length > 0) this.#refresh();
  }

  /** Updates the view and sends the changes, within `TICK_MS`. */
  #refresh(): void {
    if (this.#refreshPlanned || this.#options.audience.members.size === 0) return;
    this.#refreshPlanned = true;
    const waitMs = Math.max(0, this.#refreshedAt + TICK_MS - performance.now());
    this.#refreshes = this.#refreshes.then(() => delay(waitMs)).then(() => this.#refreshNow());
  }

  async #refreshNow(): Promise<void> {
    const { ctx, log, roomId, audience, onLeft } = this.#options;
    this.#refreshPlanned = false;
    this.#refreshedAt = performance.now();
    const requests = this.#requests.splice(0);
    if (audience.members.size === 0) {
      for (const { resolve } of requests) resolve();
      return;
    }
    try {
      await this.#readMemberships();
      const changed = this.#view.takeChanged();
      await this.#loadProfiles(changed.present);
      for (const { type, userId, data } of this.#view.update(changed, this.#profiles)) {
        if (type === 'presence.left') {
          this.#profiles.delete(userId);
          onLeft(userId);
        }
        audience.publish(this.#frame(type, data));
      }
      this.#sendSnapshots(requests);
    } catch (error) {
      log.warn({ err: error, room: roomId }, 'the users in a room could not be read');
      // Which rows were to change is no longer known.
      this.#readAll = true;
      this.#readAllDue = ctx.clock.monotonic() + REFRESH_MS;
      for (const { reject } of requests) reject(error);
    }
  }

  async #readMemberships(): Promise<void> {
    const { ctx, key } = this.#options;
    const connectionIds = [...this.#changed];
    this.#changed.clear();
    if (this.#readAll) {
      // Not after the read: what is announced during it may be too late for it.
      this.#readAll = false;
      this.#view.replaceAll(await listMemberships(ctx, key));
      this.#readAllDue = ctx.clock.monotonic() + REFRESH_MS;
    } else {
      const memberships = await Promise.all(connectionIds.map((connectionId) => membershipOf(ctx, key, connectionId)));
      for (const [i, connectionId] of connectionIds.entries()) this.#view.set(connectionId, memberships[i]);
    }
  }

  #sendSnapshots(requests: readonly SnapshotRequest[]): void {
    if (requests.length === 0) return;
    const { ctx, audience, roomId } = this.#options;
    const { partial = false } = partialOf(ctx);
    const snapshot = this.#frame(
      'presence.snapshot',
      `{"roomId":${JSON.stringify(roomId)},"items":${this.#view.items}${partial ? ',"partial":true' : ''}}`,
    );
    const encoded = wireText(snapshot);
    if (encoded.length > MAX_REPLY_BYTES) {
      const error = new CollabError(
        'payload_too_large',
        `The room is too full: its snapshot is larger than a message may be (${MAX_REPLY_BYTES} bytes)`,
      );
      for (const { reject } of requests) reject(error);
      return;
    }
    for (const { member, resolve } of requests) {
      if (audience.members.get(member.connection.id) === member) {
        audience.subscribe(member);
        member.connection.writer.sendReply(snapshot, encoded);
      }
      resolve();
    }
  }

  /** Reads the missing and stale profiles. */
  async #loadProfiles(users: readonly PresentUser[]): Promise<void> {
    const { ctx, environmentId } = this.#options;
    for (const userId of this.#staleProfiles) this.#profiles.delete(userId);
    this.#staleProfiles.clear();
    const missing = users.filter(({ userId }) => !this.#profiles.has(userId));
    await Promise.all(
      missing.map(async ({ userId }) => this.#profiles.set(userId, await profileOf(ctx, environmentId, userId))),
    );
  }

  #frame(type: string, data: string): string {
    const { ctx, roomId } = this.#options;
    return renderRoomFrame({ type, roomId, at: ctx.clock.now(), data });
  }
}
