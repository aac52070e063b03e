import { adjustSocketCount } from '../../domain/users/online.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import type { Connection, MessageReceiver } from '../session/connection.ts';
import { type MessageHandler, requireCredential } from './handler.ts';
import { messages } from './messages.ts';
import {
  errorFrame,
  FatalSocketError,
  MAX_MESSAGE_BYTES,
  okFrame,
  parseFrame,
  readEnvelope,
  refuse,
  replyId,
} from '../socket/protocol.ts';
import type { Services } from '../services.ts';

/** Handles the messages of all connections: rate limit, parsing, dispatch to a handler, reply. */
export class Dispatcher implements MessageReceiver {
  readonly #services: Services;

  constructor(services: Services) {
    this.#services = services;
  }

  receive(connection: Connection, frame: ArrayBuffer, isBinary: boolean): void {
    const message = this.#parse(connection, frame, isBinary);
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
      this.#countMessage(connection);
    } catch (error) {
      refuse(connection.writer, publicError(error));
    }
  }

  onClosed(connection: Connection): void {
    const { ctx, owner, log, connections, rooms } = this.#services;
    connections.remove(connection);
    rooms.lost(connection);
    if (!connection.counted) return;
    connection.counted = false;
    adjustSocketCount(ctx, connection.feed.environment, connection.userId, connection.countedKeyId, owner, -1).catch(
      (error: unknown) =>
        log.warn(
          { err: error, user: connection.userId },
          'a closed WebSocket could not be subtracted from those of its user: it counts until this worker ends',
        ),
    );
    log.debug({ connection: connection.id }, 'WebSocket closed');
  }

  /** Returns the object in a frame, or null if the frame was refused and the socket closed. */
  #parse(connection: Connection, frame: ArrayBuffer, isBinary: boolean): Record<string, unknown> | null {
    try {
      this.#countMessage(connection);
      if (frame.byteLength > MAX_MESSAGE_BYTES)
        throw new CollabError(
          'payload_too_large',
          `A message may be at most ${MAX_MESSAGE_BYTES} bytes, not ${frame.byteLength}`,
        );
      return parseFrame(frame, isBinary);
    } catch (error) {
      refuse(connection.writer, publicError(error));
      return null;
    }
  }

  /** Counts a message. Throws `rate_limited` if the connection sends too fast, or has too many unanswered messages. */
  #countMessage(connection: Connection): void {
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
      const reply = await handler(this.#services, connection, data);
      if (id !== null) connection.writer.sendReply(okFrame(id, reply));
    } catch (error) {
      const refusal = publicError(error);
      if (refusal.code === 'internal')
        this.#services.log.error({ err: error, connection: connection.id }, 'a WebSocket message failed');
      if (refusal instanceof FatalSocketError) refuse(connection.writer, refusal, { id });
      else connection.writer.send(errorFrame(id, refusal));
    }
  }
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
