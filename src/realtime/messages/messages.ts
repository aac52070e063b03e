import * as Type from 'typebox';
import type { TSchema } from 'typebox';
import { withFileUrls } from '../../domain/files/file-urls.ts';
import { type VerifiedClaims, verifyUserToken } from '../../domain/access/tokens.ts';
import { chargedRead } from '../../domain/quotas/read-budget.ts';
import { countWrite } from '../../domain/quotas/usage.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { timestamp } from '../../lib/clock.ts';
import type { Connection } from '../session/connection.ts';
import { currentActor, type MessageHandler, EMPTY_REPLY, usableEnvironment } from './handler.ts';
import { presenceMessages, presenceSchemas } from './presence.ts';
import { FatalSocketError } from '../socket/protocol.ts';
import { MAX_REPLY_BYTES } from '../socket/socket-writer.ts';
import { reads, readSchemas } from './reads.ts';
import type { Services } from '../services.ts';
import { recordUser } from '../session/record-user.ts';
import { writes, writeSchemas } from './writes.ts';

const refreshInput = new InputSchema(
  Type.Object({ token: Type.String({ description: 'A newer token of the same user.' }) }),
);

/** The handlers of all messages that a client may send after the welcome, by type. */
export const messages: ReadonlyMap<string, MessageHandler> = new Map<string, MessageHandler>([
  ['pong', () => Promise.resolve(EMPTY_REPLY)],
  ['auth.refresh', refreshToken],
  ...presenceMessages,
  ...[...reads].map(([type, read]): [string, MessageHandler] => [
    type,
    async (services, connection, data) => {
      // Replies may be long: a client that reads slowly must not make the server buffer many of them.
      await connection.writer.ready();
      const { ctx, config } = services;
      const actor = await currentActor(services, connection);
      const text = await chargedRead(ctx, config, actor, MAX_REPLY_BYTES, () => read(ctx, actor, data));
      return withFileUrls(text, connection.writer.baseUrl);
    },
  ]),
  ...[...writes].map(([type, write]): [string, MessageHandler] => [
    type,
    async (services, connection, data) => {
      const actor = await currentActor(services, connection);
      await countWrite(services.ctx, actor);
      return withFileUrls(await write(services.ctx, actor, data), connection.writer.baseUrl);
    },
  ]),
]);

/** The schema of `data` of each of these messages, by type; null for one without. */
export const messageSchemas: Readonly<Record<string, TSchema | null>> = {
  pong: null,
  'auth.refresh': refreshInput.schema,
  ...presenceSchemas,
  ...readSchemas,
  ...writeSchemas,
};

/**
 * Replaces the token of a connection by another one of the same user. Its rights apply from the next event and message
 * on.
 */
async function refreshToken(services: Services, connection: Connection, data: unknown): Promise<string> {
  const { token } = validate(refreshInput, data ?? {}, 'data');
  const environment = await usableEnvironment(services, connection);
  const claims = await verifyUserToken(services.ctx, environment, token);
  if (claims.userId !== connection.userId)
    throw new FatalSocketError('forbidden', 'The token is of another user: open another socket for it');
  applyClaims(services, connection, claims);
  await recordUser(services, environment, claims);
  return JSON.stringify({ tokenExpiresAt: timestamp(claims.expiresAt), role: claims.role });
}

function applyClaims({ rooms }: Services, connection: Connection, claims: VerifiedClaims): void {
  connection.signedBy = claims.signedBy;
  connection.role = claims.role;
  connection.confinedKeyId = claims.confinedKeyId;
  connection.expiresAt = claims.expiresAt;
  connection.warned = false;
  connection.feed.rescope(connection, claims.rooms);
  rooms.rescope(connection);
}
