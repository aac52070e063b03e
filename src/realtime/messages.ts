import Type from 'typebox';
import type { UserActor } from '../domain/context.ts';
import { environmentById } from '../domain/environments.ts';
import { type Claims, verifyUserToken } from '../domain/tokens.ts';
import { userSeen } from '../domain/users.ts';
import { InputSchema, validate } from '../domain/validate.ts';
import { timestamp } from '../lib/clock.ts';
import type { Environment } from '../model/environment.ts';
import type { Connection } from './connection.ts';
import { FinalRefusal } from './protocol.ts';
import type { Services } from './services.ts';
import { writes } from './writes.ts';

/**
 * Handles one message of a welcomed connection. Resolves with the JSON text of the reply's `data`; rejects with the
 * refusal, which the client is told; only a `FinalRefusal` ends the socket.
 */
export type MessageHandler = (services: Services, connection: Connection, data: unknown) => Promise<string>;

const NOTHING = '{}';

/** Every type of message that a client may send once it is welcomed. */
export const messages: ReadonlyMap<string, MessageHandler> = new Map<string, MessageHandler>([
  ['pong', () => Promise.resolve(NOTHING)],
  ['auth.refresh', refreshToken],
  ...[...writes].map(([type, write]): [string, MessageHandler] => [
    type,
    async (services, connection, data) => write(services.ctx, await actorOf(services, connection), data),
  ]),
]);

/** The user of a connection with its rights of this moment, in the environment as it is now. */
async function actorOf(services: Services, connection: Connection): Promise<UserActor> {
  const environment = await usableEnvironment(services, connection);
  const { userId, role, rooms } = connection;
  return { kind: 'user', environment, userId, role, rooms, via: 'ws' };
}

async function usableEnvironment({ ctx }: Services, connection: Connection): Promise<Environment> {
  const environment = await environmentById(ctx, connection.feed.environment.id);
  if (environment.disabled) throw new FinalRefusal('environment_disabled', 'The environment has been disabled');
  return environment;
}

const refreshInput = new InputSchema(Type.Object({ token: Type.String({ description: 'A newer token of the same user.' }) }));

/** Gives a live connection another token of its user; what the token allows holds from the next event and message on. */
async function refreshToken(services: Services, connection: Connection, data: unknown): Promise<string> {
  const { token } = validate(refreshInput, data ?? {}, 'data');
  const environment = await usableEnvironment(services, connection);
  const claims = await verifyUserToken(services.ctx, environment, token);
  if (claims.userId !== connection.userId) throw new FinalRefusal('forbidden', 'The token is of another user: open another socket for it');
  applyClaims(connection, claims);
  await userSeen(services.ctx, environment, claims, 'ws');
  return JSON.stringify({ tokenExpiresAt: timestamp(claims.expiresAt) });
}

function applyClaims(connection: Connection, claims: Claims): void {
  connection.role = claims.role;
  connection.expiresAt = claims.expiresAt;
  connection.warned = false;
  connection.feed.rescope(connection, claims.rooms);
}
