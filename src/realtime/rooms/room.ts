import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { deleteDisconnected, addMembership, isPresent, putMembership, deleteMembership, markDisconnected, type Membership, type Profile, profileOf, type PresentUser, presentUsers } from '../../domain/rooms/presence.ts';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { wireText } from '../../net/wire-text.ts';
import type { Logger } from '../../observability/log.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Bus } from '../../ports/bus.ts';
import type { Connection } from '../session/connection.ts';
import type { Hub } from '../feed/hub.ts';
import { MAX_REPLY_BYTES } from '../socket/socket-writer.ts';
import { RoomView } from './room-view.ts';
import { TypingUsers } from './typing-users.ts';

/** Milliseconds in which what was said of one and the same thing becomes the latest of it, and looks become one. */
const TICK_MS = 50;
/** How often shared memory is looked at though nobody said that something changed: hints may be lost, workers may die. */
const REFRESH_MS = 5_000;
/** How exact `lastActiveAt` is. */
const ACTIVE_MS = 10_000;

/** What rooms of a worker work with. */
export interface RoomDeps {
  readonly ctx: Context;
  readonly bus: Bus;
  readonly hub: Hub;
  readonly log: Logger;
  readonly owner: string;
}

/** A socket of this worker in a room. */
export interface Member {
  readonly connection: Connection;
  membership: Membership;
  /** When its activity was last written, by `Clock.monotonic`. */
  touchedAt: number;
  /** Whether it has its snapshot, and gets what follows. */
  subscribed: boolean;
}

/** A member that waits for its snapshot. */
interface PendingSnapshot {
  readonly member: Member;
  readonly done: () => void;
  readonly failed: (reason: unknown) => void;
}

/** What is sent through the bus on a room's topic begins with one of these; each is followed by a frame, or nothing. */
const REFRESH = 'l';
const TO_ALL = 'a';
const TYPING = 't';
/** Connection id and a space come before the frame. */
const TO_ONE = 'o';

/** Something said to the room, on its way. */
interface PendingFrame {
  readonly kind: typeof TO_ALL | typeof TYPING;
  readonly from: Member;
  readonly frame: string;
}

interface TypingFrame {
  readonly actor: { readonly userId: string };
  readonly data: { readonly threadId: string | null; readonly typing: boolean };
}

/**
 * A room that sockets of this worker have joined. Who is in it stands in shared memory; this looks there whenever somebody
 * says that it has changed, and tells its sockets the difference (decision 6).
 */
export class Room {
  readonly key: string;
  readonly roomId: string;
  readonly members = new Map<string, Member>();
  readonly #deps: RoomDeps;
  readonly #environmentId: string;
  readonly #topic: string;
  readonly #view = new RoomView();
  readonly #typingUsers = new TypingUsers();
  readonly #profiles = new Map<string, Profile>();
  readonly #renamed = new Set<string>();
  readonly #pendingFrames = new Map<string, PendingFrame>();
  #pendingSnapshots: PendingSnapshot[] = [];
  #refreshes: Promise<void> = Promise.resolve();
  #refreshPlanned = false;
  #refreshedAt = -TICK_MS;
  /** When to read the room again, by `Clock.monotonic`. */
  #refreshDue = 0;
  #listeners = 0;
  #unchecked = 0;
  #flushTimer: NodeJS.Timeout | undefined;

  constructor(deps: RoomDeps, key: string, environmentId: string, roomId: string) {
    this.#deps = deps;
    this.key = key;
    this.roomId = roomId;
    this.#environmentId = environmentId;
    this.#topic = deps.hub.nextTopic();
  }

  /** Puts a connection into the room. Call `snapshot` next: until then it is told nothing. */
  enter(connection: Connection, state: PresenceState | undefined): Member {
    const { ctx, owner } = this.#deps;
    const membership = addMembership(ctx, owner, this.key, { userId: connection.userId, connectionId: connection.id }, state);
    const member: Member = { connection, membership, touchedAt: ctx.clock.monotonic(), subscribed: false };
    this.members.set(connection.id, member);
    this.#publishToPeers(REFRESH, '');
    return member;
  }

  /**
   * Sends a member who is in the room, itself included, and from then on what changes. Resolves when that is sent, or the
   * member has gone; rejects when it can't be made.
   */
  snapshot(member: Member): Promise<void> {
    return new Promise((done, failed) => {
      this.#pendingSnapshots.push({ member, done, failed });
      this.#refresh();
    });
  }

  /** Takes a member out: at once, or, when its socket was lost, after the grace. */
  remove(member: Member, lost: boolean): void {
    const { ctx } = this.#deps;
    const { connection, membership } = member;
    if (!this.members.delete(connection.id)) return;
    if (lost) markDisconnected(ctx, this.key, membership);
    else deleteMembership(ctx, this.key, membership);
    if (member.subscribed) this.#listeners--;
    connection.writer.unsubscribe(this.#topic);
    if (this.members.size === 0) this.#flush();
    this.#changed();
  }

  setState(member: Member, state: PresenceState): void {
    const { clock } = this.#deps.ctx;
    member.touchedAt = clock.monotonic();
    this.#keep(member, { state, stateAt: member.touchedAt, activeAt: clock.now() });
    this.#changed();
  }

  cursor(from: Member, position: object): void {
    this.#touch(from);
    this.#sendLatest('cursor', { kind: TO_ALL, from, frame: this.#frame('cursor', from, JSON.stringify(position)) });
  }

  typing(from: Member, threadId: string | null, typing: boolean): void {
    this.#touch(from);
    this.#sendLatest(`typing ${threadId ?? ''}`, { kind: TYPING, from, frame: this.#typingFrame(from, threadId, typing) });
  }

  /** Tells everybody else in the room. */
  broadcast(from: Member, data: unknown): void {
    this.#touch(from);
    this.#send({ kind: TO_ALL, from, frame: this.#frame('room.broadcast', from, JSON.stringify(data)) });
  }

  /** Whether a connection is in the room, on any worker. */
  has(connectionId: string): boolean {
    return this.members.has(connectionId) || this.#view.hasConnection(connectionId) || isPresent(this.#deps.ctx, this.key, connectionId);
  }

  /** Tells one connection in the room. */
  signal(from: Member, to: string, data: unknown): void {
    this.#touch(from);
    const frame = this.#frame('p2p.signal', from, JSON.stringify({ from: from.connection.id, to, data }));
    const member = this.members.get(to);
    if (member === undefined) this.#publishToPeers(TO_ONE, `${to} ${frame}`);
    else member.connection.writer.send(frame);
  }

  /** Takes what another worker published on the topic of this room. */
  onMessage(text: string): void {
    const frame = text.slice(1);
    switch (text.charAt(0)) {
      case REFRESH:
        return this.#refresh();
      case TO_ALL:
        return this.#publish(frame);
      case TYPING:
        this.#noteTyping(frame);
        return this.#publish(frame);
      case TO_ONE: {
        const space = frame.indexOf(' ');
        return this.members.get(frame.slice(0, space))?.connection.writer.send(frame.slice(space + 1));
      }
    }
  }

  /** A user has another name or picture. */
  rename(userId: string): void {
    if (!this.#view.has(userId)) return;
    this.#renamed.add(userId);
    this.#refresh();
  }

  /** See `Rooms.removeDisconnected`. */
  removeDisconnected(environmentId: string, userId: string): void {
    if (environmentId === this.#environmentId && deleteDisconnected(this.#deps.ctx, this.key, userId)) this.#changed();
  }

  /** Does what is due. `now` is `Clock.monotonic`. */
  tick(now: number): void {
    for (const frame of this.#typingUsers.expire(now)) this.#publish(frame);
    if (now >= this.#refreshDue) this.#refresh();
  }

  #touch(member: Member): void {
    const { clock } = this.#deps.ctx;
    const now = clock.monotonic();
    if (now - member.touchedAt < ACTIVE_MS) return;
    member.touchedAt = now;
    this.#keep(member, { activeAt: clock.now() });
  }

  #keep(member: Member, changes: Partial<Membership>): void {
    member.membership = putMembership(this.#deps.ctx, this.#deps.owner, this.key, { ...member.membership, ...changes });
  }

  #changed(): void {
    this.#publishToPeers(REFRESH, '');
    this.#refresh();
  }

  #publishToPeers(kind: string, text: string): void {
    this.#deps.bus.publish({ topic: this.key, text: kind + text });
  }

  /** Says something, but only the latest of what one user says in a tick in one respect. */
  #sendLatest(respect: string, pendingFrame: PendingFrame): void {
    this.#pendingFrames.set(`${pendingFrame.from.connection.userId}\n${respect}`, pendingFrame);
    this.#flushTimer ??= setTimeout(() => this.#flush(), TICK_MS);
  }

  #flush(): void {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    const frames = [...this.#pendingFrames.values()];
    this.#pendingFrames.clear();
    for (const pendingFrame of frames) this.#send(pendingFrame);
  }

  #send({ kind, from, frame }: PendingFrame): void {
    if (kind === TYPING) this.#noteTyping(frame);
    this.#publish(frame, from);
    this.#publishToPeers(kind, frame);
  }

  #noteTyping(frame: string): void {
    const { actor, data } = JSON.parse(frame) as TypingFrame;
    const stop = data.typing ? frame.replace(/"typing":true}}$/, '"typing":false}}') : null;
    this.#typingUsers.note(`${actor.userId}\n${data.threadId ?? ''}`, actor.userId, stop, this.#deps.ctx.clock.monotonic());
  }

  /** Sends a frame to the members here, but not to the one it is from. */
  #publish(frame: string, from?: Member): void {
    if (this.#listeners === 0) return;
    const { app, limits } = this.#deps.hub;
    const encoded = wireText(frame);
    const published = from?.subscribed === true && from.connection.writer.publish(this.#topic, encoded);
    if (!published) app.publish(this.#topic, encoded, false, false);
    limits.meter?.sent(frame, published ? this.#listeners - 1 : this.#listeners);
    this.#unchecked += frame.length;
    if (this.#unchecked * 8 < limits.maxBacklog) return;
    this.#unchecked = 0;
    for (const { connection } of this.members.values()) connection.writer.checkBacklog();
  }

  /** Looks at who is in the room, at once or when the tick since the last look is over. */
  #refresh(): void {
    if (this.#refreshPlanned || this.members.size === 0) return;
    this.#refreshPlanned = true;
    const waitMs = Math.max(0, this.#refreshedAt + TICK_MS - performance.now());
    this.#refreshes = this.#refreshes.then(() => delay(waitMs)).then(() => this.#refreshNow());
  }

  async #refreshNow(): Promise<void> {
    const { ctx, log } = this.#deps;
    this.#refreshPlanned = false;
    this.#refreshedAt = performance.now();
    const joiners = this.#pendingSnapshots.splice(0);
    if (this.members.size === 0) {
      for (const { done } of joiners) done();
      return;
    }
    try {
      const users = presentUsers(ctx, this.key);
      this.#refreshDue = Math.min(ctx.clock.monotonic() + REFRESH_MS, ...users.map(({ leavesAt }) => leavesAt ?? Infinity));
      await this.#loadProfiles(users);
      for (const { type, userId, data } of this.#view.update(users, this.#profiles)) {
        if (type === 'presence.left') this.#forget(userId);
        this.#publish(this.#frame(type, null, data));
      }
      if (joiners.length > 0) this.#welcome(joiners);
    } catch (error) {
      log.warn({ err: error, room: this.roomId }, 'who is in a room could not be read');
      this.#refreshDue = ctx.clock.monotonic() + REFRESH_MS;
      for (const { failed } of joiners) failed(error);
    }
  }

  #welcome(joiners: readonly PendingSnapshot[]): void {
    const snapshot = this.#frame('presence.snapshot', null, `{"roomId":${JSON.stringify(this.roomId)},"items":${this.#view.items}}`);
    const encoded = wireText(snapshot);
    const tooLong = encoded.length > MAX_REPLY_BYTES;
    for (const { member, done, failed } of joiners) {
      if (tooLong) {
        failed(new CollabError('payload_too_large', `The room is too full: its snapshot is larger than a message may be (${MAX_REPLY_BYTES} bytes)`));
        continue;
      }
      if (this.members.get(member.connection.id) === member) {
        if (!member.subscribed) this.#listeners++;
        member.subscribed = true;
        member.connection.writer.subscribe(this.#topic);
        member.connection.writer.sendReply(snapshot, encoded);
      }
      done();
    }
  }

  /** Learns the names of those it doesn't know yet, or not any more. */
  async #loadProfiles(users: readonly PresentUser[]): Promise<void> {
    for (const userId of this.#renamed) this.#profiles.delete(userId);
    this.#renamed.clear();
    const unknown = users.filter(({ userId }) => !this.#profiles.has(userId));
    const profiles = await Promise.all(unknown.map(({ userId }) => profileOf(this.#deps.ctx, this.#environmentId, userId)));
    profiles.forEach((profile, index) => this.#profiles.set(unknown[index]?.userId ?? '', profile));
  }

  #forget(userId: string): void {
    this.#profiles.delete(userId);
    this.#typingUsers.forget(userId);
  }

  #typingFrame(from: Member, threadId: string | null, typing: boolean): string {
    return this.#frame('typing', from, JSON.stringify({ threadId, typing }));
  }

  /** `data` is JSON text. */
  #frame(type: string, from: Member | null, data: string): string {
    const at = timestamp(this.#deps.ctx.clock.now());
    const actor = from === null ? '' : `,"actor":${JSON.stringify({ userId: from.connection.userId, via: 'ws', connectionId: from.connection.id })}`;
    return `{"type":"${type}","at":"${at}","roomId":${JSON.stringify(this.roomId)}${actor},"data":${data}}`;
  }
}
