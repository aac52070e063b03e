import { countConnections } from '../../domain/users/users.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import type { Connection, MessageReceiver } from '../session/connection.ts';
import { type MessageHandler, requireCredential } from './handler.ts';
import { messages } from './messages.ts';
import { errorFrame, FinalRefusal, MAX_MESSAGE_BYTES, okFrame, parseFrame, readEnvelope, refuse, replyId } from '../socket/protocol.ts';
import type { Services } from '../services.ts';

/** Takes the messages of all connections: counts, reads, hands on, replies. */
export class Dispatcher implements MessageReceiver {
  readonly #services: Services;

  constructor(services: Services) {
    this.#services = services;
  }

  receive(connection: Connection, frame: ArrayBuffer, isBinary: boolean): void {
    const message = this.#accept(connection, frame, isBinary);
    if (message === null) return;
    const id = replyId(message);
    try {
      const { type, data } = readEnvelope(message);
      const handler = messages.get(type);
      this.#services.limits.meter?.received(type, handler !== undefined);
      if (handler === undefined) throw new CollabError('invalid_request', `Unknown message type ${shorten(type)}`);
      connection.enqueue(() => this.#handle(connection, handler, id, data));
    } catch (error) {
      connection.writer.send(errorFrame(id, publicError(error)));
    }
  }

  pinged(connection: Connection): void {
    try {
      this.#charge(connection);
    } catch (error) {
      refuse(connection.writer, publicError(error));
    }
  }

  leave(connection: Connection): void {
    const { ctx, owner, log, connections, rooms } = this.#services;
    connections.remove(connection);
    rooms.lost(connection);
    if (!connection.counted) return;
    connection.counted = false;
    countConnections(ctx, connection.feed.environment, connection.userId, owner, -1);
    log.debug({ connection: connection.id }, 'WebSocket closed');
  }

  /** The object in a frame; null when the frame has ended the socket. */
  #accept(connection: Connection, frame: ArrayBuffer, isBinary: boolean): Record<string, unknown> | null {
    try {
      this.#charge(connection);
      if (frame.byteLength > MAX_MESSAGE_BYTES) throw new CollabError('payload_too_large', `A message may be at most ${MAX_MESSAGE_BYTES} bytes`);
      return parseFrame(frame, isBinary);
    } catch (error) {
      refuse(connection.writer, publicError(error));
      return null;
    }
  }

  /** Throws `rate_limited` when the connection sends more than it may, or more than it lets be answered. */
  #charge(connection: Connection): void {
    const { messagesPerSecond, messageBurst } = this.#services.config.ws;
    const cost = 1000 / messagesPerSecond;
    const now = this.#services.ctx.clock.monotonic();
    const theoreticalArrival = Math.max(connection.theoreticalArrival, now) + cost;
    if (theoreticalArrival - now > messageBurst * cost || connection.waiting > messageBurst) {
      this.#services.limits.meter?.limited('messages');
      throw new CollabError('rate_limited', `At most ${messagesPerSecond} messages a second, ${messageBurst} at once`);
    }
    connection.theoreticalArrival = theoreticalArrival;
  }

  async #handle(connection: Connection, handler: MessageHandler, id: number | null, data: unknown): Promise<void> {
    if (!connection.writer.isOpen) return;
    try {
      await requireCredential(this.#services, connection);
      const answer = await handler(this.#services, connection, data);
      if (id !== null) connection.writer.sendReply(okFrame(id, answer));
    } catch (error) {
      const shown = publicError(error);
      if (shown.code === 'internal') this.#services.log.error({ err: error, connection: connection.id }, 'a WebSocket message failed');
      if (shown instanceof FinalRefusal) refuse(connection.writer, shown, { id });
      else connection.writer.send(errorFrame(id, shown));
    }
  }
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
