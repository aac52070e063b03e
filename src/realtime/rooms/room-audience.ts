import { wireText } from '../../net/wire-text.ts';
import type { Hub } from '../feed/hub.ts';
import { BacklogCheck } from '../socket/backlog-check.ts';
import type { SocketWriter } from '../socket/socket-writer.ts';
import type { Member } from './member.ts';

/** Sends frames to the members of one room on this worker. The subscribed members share a native topic. */
export class RoomAudience {
  /** All members on this worker by connection id, subscribed or not. */
  readonly members = new Map<string, Member>();
  readonly #hub: Hub;
  readonly #topic: string;
  #subscribers = 0;
  readonly #backlogs: BacklogCheck;

  constructor(hub: Hub) {
    this.#hub = hub;
    this.#topic = hub.nextTopic();
    this.#backlogs = new BacklogCheck(hub.limits, () => this.#writers());
  }

  /** Adds a member. It receives no published frames until `subscribe` is called. */
  add(member: Member): void {
    this.members.set(member.connection.id, member);
  }

  /** Removes a member. Returns false if it was not there. */
  remove(member: Member): boolean {
    const { connection, subscribed } = member;
    if (!this.members.delete(connection.id)) return false;
    if (subscribed) this.#subscribers--;
    connection.writer.unsubscribe(this.#topic);
    return true;
  }

  /** Lets a member receive published frames. Has no effect on one that has left. */
  subscribe(member: Member): void {
    const { connection, subscribed } = member;
    if (subscribed || this.members.get(connection.id) !== member) return;
    this.#subscribers++;
    member.subscribed = true;
    connection.writer.subscribe(this.#topic);
  }

  /** Sends a frame to all subscribed members except `from`. */
  publish(frame: string, from?: Member): void {
    if (this.#subscribers === 0) return;
    const { app, limits } = this.#hub;
    const encoded = wireText(frame);
    const exceptSender = from?.subscribed === true && from.connection.writer.publish(this.#topic, encoded);
    if (!exceptSender) app.publish(this.#topic, encoded, false, false);
    limits.meter?.sent(frame, exceptSender ? this.#subscribers - 1 : this.#subscribers);
    this.#backlogs.published(frame.length);
  }

  *#writers(): Iterable<SocketWriter> {
    for (const { connection } of this.members.values()) yield connection.writer;
  }
}
