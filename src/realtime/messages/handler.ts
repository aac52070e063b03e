import type { UserActor } from '../../domain/access/actor.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import { recheckCredentials } from '../../domain/access/tokens.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { Connection } from '../session/connection.ts';
import { FatalSocketError } from '../socket/protocol.ts';
import type { Services } from '../services.ts';

/**
 * Handles one message of a welcomed connection. Resolves with the JSON text of the reply's `data`. Rejects with the
 * error that the client receives; only a `FatalSocketError` closes the socket.
 */
export type MessageHandler = (services: Services, connection: Connection, data: unknown) => Promise<string>;

/** The reply of a handler that returns no data. */
export const EMPTY_REPLY = '{}';

/** The user of a connection with its current rights, in the environment as it is now. */
export async function currentActor(services: Services, connection: Connection): Promise<UserActor> {
  return actorIn(await usableEnvironment(services, connection), connection);
}

/** Like `currentActor`, but synchronous and with the environment as of up to a second ago: for frequent messages. */
export function cachedActor(connection: Connection): UserActor {
  return actorIn(connection.feed.environment, connection);
}

/** The environment of a connection as it is now. Throws a `FatalSocketError` if it is disabled. */
export async function usableEnvironment({ ctx }: Services, connection: Connection): Promise<Environment> {
  const environment = await environmentById(ctx, connection.feed.environment.id);
  if (environment.disabled) throw new FatalSocketError('environment_disabled', 'The environment has been disabled');
  return environment;
}

/**
 * Throws a `FatalSocketError` if the publishable key of a connection, or the signing key of its token, is no longer
 * valid.
 */
export async function requireCredential(services: Services, connection: Connection): Promise<void> {
  const errorOf = await recheckCredentials(services.ctx, connection.feed.environment, [connection]);
  const refusal = errorOf(connection);
  if (refusal === null) return;
  // The keys of an environment are deleted with it; the error must then name the environment.
  await usableEnvironment(services, connection);
  throw new FatalSocketError(refusal.code, refusal.message);
}

function actorIn(environment: Environment, { userId, role, rooms, confinedKeyId }: Connection): UserActor {
  return { kind: 'user', environment, userId, role, rooms, confinedKeyId, via: 'ws' };
}
