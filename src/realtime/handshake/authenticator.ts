import Type from 'typebox';
import type { AuthenticatedUser } from '../../domain/access/tokens.ts';
import { countConnections } from '../../domain/users/users.ts';
import { InputSchema, isRecord, validate } from '../../domain/input/validate.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import { Connection, type MessageReceiver } from '../session/connection.ts';
import type { PendingSocket, Authenticator } from './pending-sockets.ts';
import { authenticate, logRefusal } from './upgrade.ts';
import type { SocketWriter } from '../socket/socket-writer.ts';
import { type Envelope, MAX_MESSAGE_BYTES, okFrame, refuse, welcomeFrame } from '../socket/protocol.ts';
import { catchUp, isRecoverable, type ResumePoint, resumePoint } from '../feed/replay.ts';
import type { Services } from '../session/services.ts';
import { recordUser } from './user-record.ts';

const connectInput = new InputSchema(
  Type.Object({
    key: Type.Optional(Type.String({ description: 'Publishable key, where the query does not have it.' })),
    token: Type.Optional(Type.String({ description: 'User token.' })),
    since: Type.Optional(Type.Unknown({ description: '{epoch, seq}: where the client was when it was last connected.' })),
  }),
);

/** Makes connections of sockets whose user is known. */
export class SocketAuthenticator implements Authenticator {
  readonly #services: Services;
  readonly #desk: MessageReceiver;

  constructor(services: Services, desk: MessageReceiver) {
    this.#services = services;
    this.#desk = desk;
  }

  /**
   * Makes a connection of an open socket. Its messages wait from now on until it is welcomed; whatever goes wrong on the
   * way closes it.
   *
   * @param replyTo id of the `connect` message; null when there was none, or it wants no reply
   */
  admit(writer: SocketWriter, user: AuthenticatedUser, resume: ResumePoint | null, replyTo: number | null): void {
    const { ctx, hub } = this.#services;
    const feed = hub.feed(user.actor.environment);
    const connection = new Connection(newId('cn_', ctx.clock.now()), writer, feed, user, this.#desk);
    feed.join(connection);
    writer.attachSession(connection);
    connection.enqueue(() => this.#welcome(connection, user, resume, replyTo).catch((error: unknown) => this.#fail(connection, error)));
  }

  async connect(pending: PendingSocket, message: Envelope): Promise<void> {
    const { writer, info: pass } = pending;
    this.#services.limits.meter?.received('connect', true);
    try {
      const { key, token, since } = validate(connectInput, message.data ?? {}, 'data');
      const user = await authenticate(this.#services.ctx, key ?? pass.key, token ?? '', pass.origin);
      if (!writer.isOpen) return;
      this.#services.pendingSockets.leave(pending);
      this.admit(writer, user, isRecord(since) ? resumePoint(since['epoch'], since['seq']) : pass.resume, message.id);
    } catch (error) {
      logRefusal(this.#services.log, error, { address: pass.address });
      refuse(writer, publicError(error), { id: message.id });
    }
  }

  leave(pending: PendingSocket): void {
    this.#services.pendingSockets.leave(pending);
  }

  async #welcome(connection: Connection, user: AuthenticatedUser, resume: ResumePoint | null, replyTo: number | null): Promise<void> {
    const { ctx, config, log } = this.#services;
    const { writer, feed } = connection;
    if (!this.#count(connection, replyTo)) return;
    await recordUser(this.#services, user.actor.environment, user.claims);
    await feed.ready;
    const recovered = resume !== null && (await isRecoverable(ctx.store, user.actor.environment, resume));
    if (resume !== null) this.#services.limits.meter?.resumed(recovered);
    if (!writer.isOpen) return;

    connection.position = recovered ? resume.seq : feed.delivered;
    const welcome = welcomeFrame({
      connectionId: connection.id,
      userId: connection.userId,
      environmentId: feed.environment.id,
      epoch: feed.epoch,
      seq: Math.max(connection.position, feed.delivered),
      recovered,
      heartbeatMs: config.ws.heartbeatSeconds * 1000,
      maxMessageBytes: MAX_MESSAGE_BYTES,
      tokenExpiresAt: timestamp(connection.expiresAt),
      serverTime: timestamp(ctx.clock.now()),
    });
    writer.send(welcome);
    if (replyTo !== null) writer.send(okFrame(replyTo, JSON.stringify({ connectionId: connection.id })));
    connection.welcomed = true;
    log.debug({ connection: connection.id, environment: feed.environment.id, user: connection.userId, recovered }, 'WebSocket open');
    // Messages are taken while a long replay still runs.
    catchUp(ctx.store, connection).catch((error: unknown) => this.#fail(connection, error));
  }

  /** Counts the socket as one of its user's, over the whole cluster. Refuses it and answers false when they are too many. */
  #count(connection: Connection, replyTo: number | null): boolean {
    const { ctx, config, owner } = this.#services;
    const limit = config.ws.maxConnectionsPerUser;
    connection.counted = true;
    if (countConnections(ctx, connection.feed.environment, connection.userId, owner, 1) <= limit) return true;
    this.#services.limits.meter?.limited('connections');
    const error = new CollabError('rate_limited', `A user may hold at most ${limit} sockets open`);
    refuse(connection.writer, error, { id: replyTo, reason: 'too_many_connections' });
    return false;
  }

  #fail(connection: Connection, error: unknown): void {
    const shown = publicError(error);
    if (shown.code === 'internal') this.#services.log.error({ err: error, connection: connection.id }, 'a WebSocket could not be served');
    refuse(connection.writer, shown);
  }
}
