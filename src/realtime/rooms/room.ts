import type { Context } from '../../domain/context.ts';
import type { OwnMembership } from '../../domain/rooms/membership.ts';
import {
  deleteDisconnected,
  deleteMembership,
  isPresent,
  joinedAtOf,
  markDisconnected,
  newMembership,
  putMembership,
} from '../../domain/rooms/presence.ts';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Logger } from '../../observability/log.ts';
import type { Bus, Subscription } from '../../ports/bus.ts';
import type { Hub } from '../feed/hub.ts';
import type { Connection } from '../session/connection.ts';
import { LatestFrames, type OutgoingFrame } from './latest-frames.ts';
import type { Member } from './member.ts';
import { decodePeerMessage, encodePeerMessage, type PeerMessage } from './peer-message.ts';
import { RoomAudience } from './room-audience.ts';
import { renderRoomFrame } from './room-frame.ts';
import { RoomPresence } from './room-presence.ts';
import { TypingUsers } from './typing-users.ts';

/** Precision of `lastActiveAt`, in milliseconds. */
const ACTIVE_MS = 10_000;

/**
 * How long a socket that joins waits for what other workers publish to arrive, in milliseconds. Afterwards it joins all
 * the same: what it misses until then is repaired, as everything that the bus loses is.
 */
const SUBSCRIBE_MS = 1_000;

/** Dependencies of the rooms of a worker. */
export interface RoomDeps {
  readonly ctx: Context;
  readonly bus: Bus;
  readonly hub: Hub;
  readonly log: Logger;
  /** Id of this worker. */
  readonly owner: string;
}

interface TypingFrame {
  readonly actor: { readonly userId: string };
  readonly data: { readonly threadId: string | null; readonly typing: boolean };
}

/**
 * A room that sockets of this worker have joined. Its memberships are in shared memory; nothing else that members send
 * is kept.
 */
export class Room {
  /** Key of the room in shared memory, and its topic on the bus. */
  readonly key: string;
  readonly roomId: string;
  readonly #deps: RoomDeps;
  readonly #environmentId: string;
  readonly #audience: RoomAudience;
  readonly #presence: RoomPresence;
  readonly #typingUsers = new TypingUsers();
  readonly #latest = new LatestFrames((frame) => this.#send(frame));
  readonly #subscription: Subscription;
  #isSubscribed = false;

  constructor(deps: RoomDeps, key: string, environmentId: string, roomId: string) {
    this.#deps = deps;
    this.key = key;
    this.roomId = roomId;
    this.#environmentId = environmentId;
    this.#audience = new RoomAudience(deps.hub);
    const { ctx, log } = deps;
    this.#presence = new RoomPresence({
      ctx,
      log,
      key,
      environmentId,
      roomId,
      audience: this.#audience,
      onLeft: (userId) => this.#typingUsers.remove(userId),
    });
    this.#subscription = deps.bus.subscribe(key, (text) => this.#onMessage(text));
    void this.#subscription.ready.then(() => {
      this.#isSubscribed = true;
      this.#presence.subscribed();
    });
  }

  /** Whether no connection of this worker is in the room. */
  get isEmpty(): boolean {
    return this.#audience.members.size === 0;
  }

  /**
   * Makes a connection a member. The others do not see it until `enter` is called, and it receives nothing until
   * `snapshot`.
   */
  add(connection: Connection, state: PresenceState | undefined): Member {
    const { ctx } = this.#deps;
    const membership = newMembership(ctx, { userId: connection.userId, connectionId: connection.id }, state);
    const member: Member = {
      connection,
      membership,
      written: false,
      touchedAt: ctx.clock.monotonic(),
      subscribed: false,
    };
    this.#audience.add(member);
    return member;
  }

  /** Shows a new member to the others. A user who is present already, or within the grace period, keeps `joinedAt`. */
  async enter(member: Member): Promise<void> {
    const joinedAt = await joinedAtOf(this.#deps.ctx, this.key, member.connection.userId);
    if (this.#audience.members.get(member.connection.id) !== member) return;
    await this.#write(member, { joinedAt: joinedAt ?? member.membership.joinedAt });
  }

  /** Resolves once what other workers publish in the room arrives, or a second later. */
  async subscribed(): Promise<void> {
    if (!this.#isSubscribed) await withTimeout(SUBSCRIBE_MS, this.#subscription.ready, () => {});
  }

  /** Stops listening to other workers: this one has no socket in the room any more. */
  stop(): void {
    this.#subscription.stop();
  }

  /**
   * Sends a member the users in the room, itself included, and from then on what happens there. Resolves once the
   * snapshot is sent or the member has left; rejects if the snapshot cannot be built.
   */
  snapshot(member: Member): Promise<void> {
    return this.#presence.snapshot(member);
  }

  /**
   * Removes a member. The others see it leave at once, or after the grace period if its socket was lost. Resolves when
   * shared memory says so. Never rejects.
   */
  async remove(member: Member, lost: boolean): Promise<void> {
    const { ctx } = this.#deps;
    if (!this.#audience.remove(member)) return;
    if (this.isEmpty) this.#latest.flush();
    // The calls of a process take effect in their order, so this one replaces a write that is not answered yet.
    if (member.written)
      await this.#release(() => (lost ? markDisconnected : deleteMembership)(ctx, this.key, member.membership));
    this.#changed(member.connection.id);
  }

  /** Replaces the state of a user. */
  async setState(member: Member, state: PresenceState): Promise<void> {
    const { clock } = this.#deps.ctx;
    member.touchedAt = clock.monotonic();
    await this.#write(member, { state, stateSetAt: member.touchedAt, activeAt: clock.now() });
  }

  /** Sends the cursor of a member to the others. Of several within 50 ms only the latest is sent. */
  sendCursor(from: Member, position: object): Promise<void> {
    this.#latest.add('cursor', { kind: 'frame', from, frame: this.#frame('cursor', from, JSON.stringify(position)) });
    return this.#touch(from);
  }

  /** Tells the others whether a member is typing. Of several within 50 ms in one thread only the latest is sent. */
  typing(from: Member, threadId: string | null, typing: boolean): Promise<void> {
    const frame = this.#frame('typing', from, JSON.stringify({ threadId, typing }));
    this.#latest.add(`typing ${threadId ?? ''}`, { kind: 'typing', from, frame });
    return this.#touch(from);
  }

  /** Sends data to all others in the room. */
  broadcast(from: Member, data: unknown): Promise<void> {
    this.#send({ kind: 'frame', from, frame: this.#frame('room.broadcast', from, JSON.stringify(data)) });
    return this.#touch(from);
  }

  /** Whether a connection is in the room, on any worker. */
  async has(connectionId: string): Promise<boolean> {
    return (
      this.#audience.members.has(connectionId) ||
      this.#presence.hasConnection(connectionId) ||
      isPresent(this.#deps.ctx, this.key, connectionId)
    );
  }

  /** Sends data to one connection in the room. */
  signal(from: Member, to: string, data: unknown): Promise<void> {
    const frame = this.#frame('p2p.signal', from, JSON.stringify({ from: from.connection.id, to, data }));
    const member = this.#audience.members.get(to);
    if (member === undefined) this.#publishToPeers({ kind: 'direct', connectionId: to, frame });
    else member.connection.writer.send(frame);
    return this.#touch(from);
  }

  #onMessage(text: string): void {
    const message = decodePeerMessage(text);
    if (message === null) return;
    switch (message.kind) {
      case 'changed':
        return this.#presence.membershipChanged(message.connectionId);
      case 'frame':
        return this.#audience.publish(message.frame);
      case 'typing':
        this.#recordTyping(message.frame);
        return this.#audience.publish(message.frame);
      case 'direct':
        return this.#audience.members.get(message.connectionId)?.connection.writer.send(message.frame);
    }
  }

  /** Must be called when the name or picture of a user has changed. */
  profileChanged(userId: string): void {
    this.#presence.profileChanged(userId);
  }

  /** See `Rooms.removeDisconnected`. Never rejects. */
  async removeDisconnected(environmentId: string, userId: string): Promise<void> {
    if (environmentId !== this.#environmentId) return;
    await this.#release(async () => {
      for (const connectionId of await deleteDisconnected(this.#deps.ctx, this.key, userId))
        this.#changed(connectionId);
    });
  }

  /** Writes the memberships of this worker's connections in a new lease. */
  async writeAgain(): Promise<void> {
    const { ctx, owner } = this.#deps;
    const written = [...this.#audience.members.values()].filter((member) => member.written);
    await Promise.all(written.map(({ membership }) => putMembership(ctx, owner, this.key, membership)));
    this.#changed(null);
  }

  /**
   * Ends the typing of users who have not typed for a while, and does `RoomPresence.tick`. `now` is `Clock.monotonic`.
   */
  tick(now: number): void {
    for (const frame of this.#typingUsers.expire(now)) this.#audience.publish(frame);
    this.#presence.tick(now);
  }

  async #touch(member: Member): Promise<void> {
    const { clock } = this.#deps.ctx;
    const now = clock.monotonic();
    if (now - member.touchedAt < ACTIVE_MS) return;
    member.touchedAt = now;
    await this.#write(member, { activeAt: clock.now() });
  }

  async #write(member: Member, changes: Partial<OwnMembership>): Promise<void> {
    member.membership = { ...member.membership, ...changes };
    member.written = true;
    await putMembership(this.#deps.ctx, this.#deps.owner, this.key, member.membership);
    this.#changed(member.connection.id);
  }

  /**
   * Removes memberships from shared memory. A failure is logged: the sockets have left, whatever shared memory says.
   */
  async #release(remove: () => Promise<void>): Promise<void> {
    try {
      await remove();
    } catch (error) {
      this.#deps.log.warn(
        { err: error, room: this.roomId },
        'a connection that has left a room could not be removed from shared memory: its user may be shown there until this worker ends',
      );
    }
  }

  /** Announces that a membership was written or deleted; null stands for any. */
  #changed(connectionId: string | null): void {
    this.#publishToPeers({ kind: 'changed', connectionId });
    this.#presence.membershipChanged(connectionId);
  }

  #send({ kind, from, frame }: OutgoingFrame): void {
    if (kind === 'typing') this.#recordTyping(frame);
    this.#audience.publish(frame, from);
    this.#publishToPeers({ kind, frame });
  }

  #publishToPeers(message: PeerMessage): void {
    this.#deps.bus.publish({ topic: this.key, text: encodePeerMessage(message) });
  }

  #recordTyping(frame: string): void {
    const parsed = JSON.parse(frame) as TypingFrame;
    const { actor, data } = parsed;
    const stopFrame = data.typing ? JSON.stringify({ ...parsed, data: { ...data, typing: false } }) : null;
    this.#typingUsers.set(actor.userId, data.threadId, stopFrame, this.#deps.ctx.clock.monotonic());
  }

  /** `data` is JSON text. */
  #frame(type: string, from: Member, data: string): string {
    return renderRoomFrame({ type, roomId: this.roomId, at: this.#deps.ctx.clock.now(), from, data });
  }
}
