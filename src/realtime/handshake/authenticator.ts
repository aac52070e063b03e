import * as Type from 'typebox';
import type { AuthenticatedUser } from '../../domain/access/tokens.ts';
import { adjustSocketCount } from '../../domain/users/online.ts';
import { InputSchema, isRecord, validate } from '../../domain/input/validate.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import { Connection, type MessageReceiver } from '../session/connection.ts';
import type { PendingSocket, Authenticator } from './pending-sockets.ts';
import { authenticate, logRefusal } from './upgrade.ts';
import type { SocketWriter } from '../socket/socket-writer.ts';
import { type Envelope, MAX_MESSAGE_BYTES, okFrame, refuse, welcomeFrame } from '../socket/protocol.ts';
import { catchUp, isRecoverable } from '../feed/replay.ts';
import { type ResumePoint, resumePoint } from '../feed/resume-point.ts';
import type { Services } from '../services.ts';
import { recordUser } from '../session/record-user.ts';

/** The schema of `data` of `connect`, the first message of a socket that has not authenticated otherwise. */
export const ConnectSchema = Type.Object({
  key: Type.Optional(Type.String({ description: 'Publishable key, unless it is in the query.' })),
  token: Type.Optional(Type.String({ description: 'User token.' })),
  since: Type.Optional(
    Type.Unknown({ description: '{epoch, seq}: the position at which the client was last connected.' }),
  ),
});
const connectInput = new InputSchema(ConnectSchema);

/** Turns authenticated sockets into connections. */
export class SocketAuthenticator implements Authenticator {
  readonly #services: Services;
  readonly #receiver: MessageReceiver;

  constructor(services: Services, receiver: MessageReceiver) {
    this.#services = services;
    this.#receiver = receiver;
  }

  /**
   * Creates the connection of an open socket. Its messages are queued until the welcome is sent; any failure before
   * that closes it.
   *
   * @param replyTo id of the `connect` message; null if there was none or it asks for no reply
   */
  admit(writer: SocketWriter, user: AuthenticatedUser, resume: ResumePoint | null, replyTo: number | null): void {
    const { ctx, hub, connections } = this.#services;
    const feed = hub.feed(user.actor.environment);
    const connection = new Connection(newId('cn_', ctx.clock.now()), writer, feed, user, this.#receiver);
    connections.add(connection);
    writer.attachSession(connection);
    connection.enqueue(() =>
      this.#welcome(connection, user, resume, replyTo).catch((error: unknown) => this.#fail(connection, error)),
    );
  }

  async connect(pending: PendingSocket, message: Envelope): Promise<void> {
    const { writer, info } = pending;
    this.#services.limits.meter?.received('connect', true);
    try {
      await pending.counted;
      if (!writer.isOpen) return;
      const { key, token, since } = validate(connectInput, message.data ?? {}, 'data');
      const user = await authenticate(this.#services.ctx, key ?? info.key, token ?? '', info.origin);
      if (!writer.isOpen) return;
      this.#services.pendingSockets.remove(pending);
      this.admit(writer, user, isRecord(since) ? resumePoint(since['epoch'], since['seq']) : info.resume, message.id);
    } catch (error) {
      logRefusal(this.#services.log, error, { address: info.address });
      refuse(writer, publicError(error), { id: message.id });
    }
  }

  onClosed(pending: PendingSocket): void {
    this.#services.pendingSockets.remove(pending);
  }

  async #welcome(
    connection: Connection,
    user: AuthenticatedUser,
    resume: ResumePoint | null,
    replyTo: number | null,
  ): Promise<void> {
    const { ctx, config, log } = this.#services;
    const { writer, feed } = connection;
    if (!(await this.#count(connection, replyTo))) return;
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
      role: connection.role,
      serverTime: timestamp(ctx.clock.now()),
    });
    writer.send(welcome);
    if (replyTo !== null) writer.send(okFrame(replyTo, JSON.stringify({ connectionId: connection.id })));
    connection.welcomed = true;
    log.debug(
      { connection: connection.id, environment: feed.environment.id, user: connection.userId, recovered },
      'WebSocket open',
    );
    // Not awaited: messages are handled during a long replay.
    catchUp(ctx.store, feed, connection).catch((error: unknown) => this.#fail(connection, error));
  }

  /**
   * Counts the socket among those of its user in the whole cluster. Refuses it and returns false if there are too many.
   */
  async #count(connection: Connection, replyTo: number | null): Promise<boolean> {
    const { ctx, config, owner } = this.#services;
    const limit = config.ws.maxConnectionsPerUser;
    connection.counted = true;
    if (
      (await adjustSocketCount(
        ctx,
        connection.feed.environment,
        connection.userId,
        connection.countedKeyId,
        owner,
        1,
      )) <= limit
    )
      return true;
    this.#services.limits.meter?.limited('connections');
    const error = new CollabError('rate_limited', `A user may have at most ${limit} open sockets`);
    refuse(connection.writer, error, { id: replyTo, reason: 'too_many_connections' });
    return false;
  }

  #fail(connection: Connection, error: unknown): void {
    const refusal = publicError(error);
    if (refusal.code === 'internal')
      this.#services.log.error({ err: error, connection: connection.id }, 'a WebSocket could not be served');
    refuse(connection.writer, refusal);
  }
}
