import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../domain/context.ts';
import { dropLost, enter, isIn, keep, leave, lose, type Membership, type Person, personOf, type PresentUser, presentUsers } from '../domain/presence.ts';
import { CollabError } from '../errors.ts';
import { timestamp } from '../lib/clock.ts';
import { wireText } from '../lib/wire-text.ts';
import type { Logger } from '../log.ts';
import type { PresenceState } from '../model/presence.ts';
import type { Bus } from '../ports/bus.ts';
import type { Connection } from './connection.ts';
import type { Hub } from './hub.ts';
import { MAX_ASKED_BYTES } from './line.ts';
import { RoomView } from './room-view.ts';
import { Typists } from './typing.ts';

/** Milliseconds in which what was said of one and the same thing becomes the latest of it, and looks become one. */
const TICK_MS = 50;
/** How often shared memory is looked at though nobody said that something changed: hints may be lost, workers may die. */
const LOOK_MS = 5_000;
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
  readonly room: Room;
  membership: Membership;
  /** When its activity was last written, by `Clock.monotonic`. */
  touchedAt: number;
  /** Whether it has its snapshot, and gets what follows. */
  told: boolean;
}

/** A member that waits for its snapshot. */
interface Joiner {
  readonly member: Member;
  readonly done: () => void;
  readonly failed: (reason: unknown) => void;
}

/** What is sent through the bus on a room's topic begins with one of these; each is followed by a frame, or nothing. */
const LOOK = 'l';
const TO_ALL = 'a';
const TYPING = 't';
/** Connection id and a space come before the frame. */
const TO_ONE = 'o';

/** Something said to the room, on its way. */
interface Saying {
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
  readonly #typists = new Typists();
  readonly #people = new Map<string, Person>();
  readonly #renamed = new Set<string>();
  readonly #sayings = new Map<string, Saying>();
  #joiners: Joiner[] = [];
  #looks: Promise<void> = Promise.resolve();
  #lookPlanned = false;
  #lookedAt = -TICK_MS;
  /** When to read the room again, by `Clock.monotonic`. */
  #lookDue = 0;
  #listeners = 0;
  #unchecked = 0;
  #sayTimer: NodeJS.Timeout | undefined;

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
    const membership = enter(ctx, owner, this.key, { userId: connection.userId, connectionId: connection.id }, state);
    const member: Member = { connection, room: this, membership, touchedAt: ctx.clock.monotonic(), told: false };
    this.members.set(connection.id, member);
    this.#tellOthers(LOOK, '');
    return member;
  }

  /**
   * Sends a member who is in the room, itself included, and from then on what changes. Resolves when that is sent, or the
   * member has gone; rejects when it can't be made.
   */
  snapshot(member: Member): Promise<void> {
    return new Promise((done, failed) => {
      this.#joiners.push({ member, done, failed });
      this.#look();
    });
  }

  /** Takes a member out: at once, or, when its socket was lost, after the grace. */
  remove(member: Member, lost: boolean): void {
    const { ctx } = this.#deps;
    const { connection, membership } = member;
    if (!this.members.delete(connection.id)) return;
    if (lost) lose(ctx, this.key, membership);
    else leave(ctx, this.key, membership);
    if (member.told) this.#listeners--;
    connection.line.unsubscribe(this.#topic);
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
    this.#sayLatest('cursor', { kind: TO_ALL, from, frame: this.#frame('cursor', from, JSON.stringify(position)) });
  }

  typing(from: Member, threadId: string | null, typing: boolean): void {
    this.#touch(from);
    this.#sayLatest(`typing ${threadId ?? ''}`, { kind: TYPING, from, frame: this.#typingFrame(from, threadId, typing) });
  }

  /** Tells everybody else in the room. */
  broadcast(from: Member, data: unknown): void {
    this.#touch(from);
    this.#say({ kind: TO_ALL, from, frame: this.#frame('room.broadcast', from, JSON.stringify(data)) });
  }

  /** Whether a connection is in the room, on any worker. */
  has(connectionId: string): boolean {
    return this.members.has(connectionId) || this.#view.hasConnection(connectionId) || isIn(this.#deps.ctx, this.key, connectionId);
  }

  /** Tells one connection in the room. */
  signal(from: Member, to: string, data: unknown): void {
    this.#touch(from);
    const frame = this.#frame('p2p.signal', from, JSON.stringify({ from: from.connection.id, to, data }));
    const member = this.members.get(to);
    if (member === undefined) this.#tellOthers(TO_ONE, `${to} ${frame}`);
    else member.connection.line.send(frame);
  }

  /** Takes what another worker published on the topic of this room. */
  hear(text: string): void {
    const frame = text.slice(1);
    switch (text.charAt(0)) {
      case LOOK:
        return this.#look();
      case TO_ALL:
        return this.#publish(frame);
      case TYPING:
        this.#noteTyping(frame);
        return this.#publish(frame);
      case TO_ONE: {
        const space = frame.indexOf(' ');
        return this.members.get(frame.slice(0, space))?.connection.line.send(frame.slice(space + 1));
      }
    }
  }

  /** A user has another name or picture. */
  rename(userId: string): void {
    if (!this.#view.has(userId)) return;
    this.#renamed.add(userId);
    this.#look();
  }

  /** As `dropLost`; the others are told. */
  dropLost(environmentId: string, userId: string): void {
    if (environmentId === this.#environmentId && dropLost(this.#deps.ctx, this.key, userId)) this.#changed();
  }

  /** Does what is due. `now` is `Clock.monotonic`. */
  turn(now: number): void {
    for (const frame of this.#typists.expire(now)) this.#publish(frame);
    if (now >= this.#lookDue) this.#look();
  }

  #touch(member: Member): void {
    const { clock } = this.#deps.ctx;
    const now = clock.monotonic();
    if (now - member.touchedAt < ACTIVE_MS) return;
    member.touchedAt = now;
    this.#keep(member, { activeAt: clock.now() });
  }

  #keep(member: Member, changes: Partial<Membership>): void {
    member.membership = keep(this.#deps.ctx, this.#deps.owner, this.key, { ...member.membership, ...changes });
  }

  #changed(): void {
    this.#tellOthers(LOOK, '');
    this.#look();
  }

  #tellOthers(kind: string, text: string): void {
    this.#deps.bus.publish({ topic: this.key, text: kind + text });
  }

  /** Says something, but only the latest of what one user says in a tick in one respect. */
  #sayLatest(respect: string, saying: Saying): void {
    this.#sayings.set(`${saying.from.connection.userId}\n${respect}`, saying);
    this.#sayTimer ??= setTimeout(() => this.#flush(), TICK_MS);
  }

  #flush(): void {
    clearTimeout(this.#sayTimer);
    this.#sayTimer = undefined;
    const sayings = [...this.#sayings.values()];
    this.#sayings.clear();
    for (const saying of sayings) this.#say(saying);
  }

  #say({ kind, from, frame }: Saying): void {
    if (kind === TYPING) this.#noteTyping(frame);
    this.#publish(frame, from);
    this.#tellOthers(kind, frame);
  }

  #noteTyping(frame: string): void {
    const { actor, data } = JSON.parse(frame) as TypingFrame;
    const stop = data.typing ? frame.replace(/"typing":true}}$/, '"typing":false}}') : null;
    this.#typists.note(`${actor.userId}\n${data.threadId ?? ''}`, actor.userId, stop, this.#deps.ctx.clock.monotonic());
  }

  /** Sends a frame to the members here, but not to the one it is from. */
  #publish(frame: string, from?: Member): void {
    if (this.#listeners === 0) return;
    const { app, terms } = this.#deps.hub;
    const encoded = wireText(frame);
    const published = from?.told === true && from.connection.line.publish(this.#topic, encoded);
    if (!published) app.publish(this.#topic, encoded, false, false);
    terms.meter?.sent(frame, published ? this.#listeners - 1 : this.#listeners);
    this.#unchecked += frame.length;
    if (this.#unchecked * 8 < terms.maxBacklog) return;
    this.#unchecked = 0;
    for (const { connection } of this.members.values()) connection.line.checkBacklog();
  }

  /** Looks at who is in the room, at once or when the tick since the last look is over. */
  #look(): void {
    if (this.#lookPlanned || this.members.size === 0) return;
    this.#lookPlanned = true;
    const waitMs = Math.max(0, this.#lookedAt + TICK_MS - performance.now());
    this.#looks = this.#looks.then(() => delay(waitMs)).then(() => this.#lookNow());
  }

  async #lookNow(): Promise<void> {
    const { ctx, log } = this.#deps;
    this.#lookPlanned = false;
    this.#lookedAt = performance.now();
    const joiners = this.#joiners.splice(0);
    if (this.members.size === 0) {
      for (const { done } of joiners) done();
      return;
    }
    try {
      const users = presentUsers(ctx, this.key);
      this.#lookDue = Math.min(ctx.clock.monotonic() + LOOK_MS, ...users.map(({ leavesAt }) => leavesAt ?? Infinity));
      await this.#meet(users);
      for (const { type, userId, data } of this.#view.update(users, this.#people)) {
        if (type === 'presence.left') this.#forget(userId);
        this.#publish(this.#frame(type, null, data));
      }
      if (joiners.length > 0) this.#welcome(joiners);
    } catch (error) {
      log.warn({ err: error, room: this.roomId }, 'who is in a room could not be read');
      this.#lookDue = ctx.clock.monotonic() + LOOK_MS;
      for (const { failed } of joiners) failed(error);
    }
  }

  #welcome(joiners: readonly Joiner[]): void {
    const snapshot = this.#frame('presence.snapshot', null, `{"roomId":${JSON.stringify(this.roomId)},"items":${this.#view.items}}`);
    const encoded = wireText(snapshot);
    const tooLong = encoded.length > MAX_ASKED_BYTES;
    for (const { member, done, failed } of joiners) {
      if (tooLong) {
        failed(new CollabError('payload_too_large', `The room is too full: its snapshot is larger than a message may be (${MAX_ASKED_BYTES} bytes)`));
        continue;
      }
      if (this.members.get(member.connection.id) === member) {
        if (!member.told) this.#listeners++;
        member.told = true;
        member.connection.line.subscribe(this.#topic);
        member.connection.line.sendAsked(snapshot, encoded);
      }
      done();
    }
  }

  /** Learns the names of those it doesn't know yet, or not any more. */
  async #meet(users: readonly PresentUser[]): Promise<void> {
    for (const userId of this.#renamed) this.#people.delete(userId);
    this.#renamed.clear();
    const unknown = users.filter(({ userId }) => !this.#people.has(userId));
    const people = await Promise.all(unknown.map(({ userId }) => personOf(this.#deps.ctx, this.#environmentId, userId)));
    people.forEach((person, index) => this.#people.set(unknown[index]?.userId ?? '', person));
  }

  #forget(userId: string): void {
    this.#people.delete(userId);
    this.#typists.forget(userId);
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
