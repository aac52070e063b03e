import type { UserActor } from '../../domain/context.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import { recheckCredentials } from '../../domain/access/tokens.ts';
import type { Environment } from '../../model/environment.ts';
import type { Connection } from '../session/connection.ts';
import { FinalRefusal } from '../socket/protocol.ts';
import type { Services } from '../services.ts';

/**
 * Handles one message of a welcomed connection. Resolves with the JSON text of the reply's `data`; rejects with the
 * refusal, which the client is told; only a `FinalRefusal` ends the socket.
 */
export type MessageHandler = (services: Services, connection: Connection, data: unknown) => Promise<string>;

/** Reply to what has nothing to say. */
export const EMPTY_REPLY = '{}';

/** The user of a connection with its rights of this moment, in the environment as it is now. */
export async function currentActor(services: Services, connection: Connection): Promise<UserActor> {
  return actorIn(await usableEnvironment(services, connection), connection);
}

/** As `actorOf`, at once, in the environment as it was a second ago: for what is too frequent to look. */
export function cachedActor(connection: Connection): UserActor {
  return actorIn(connection.feed.environment, connection);
}

/** The environment of a connection as it is now. Throws a `FinalRefusal` when it has been disabled. */
export async function usableEnvironment({ ctx }: Services, connection: Connection): Promise<Environment> {
  const environment = await environmentById(ctx, connection.feed.environment.id);
  if (environment.disabled) throw new FinalRefusal('environment_disabled', 'The environment has been disabled');
  return environment;
}

/** Throws a `FinalRefusal` when what let a connection in is good no more: its publishable key, or the key of its token. */
export async function requireCredential(services: Services, connection: Connection): Promise<void> {
  const judge = await recheckCredentials(services.ctx, connection.feed.environment, [connection]);
  const refusal = judge(connection);
  if (refusal === null) return;
  // The keys of an environment go with it, and it is the environment that is to be named then.
  await usableEnvironment(services, connection);
  throw new FinalRefusal(refusal.code, refusal.message);
}

function actorIn(environment: Environment, { userId, role, rooms }: Connection): UserActor {
  return { kind: 'user', environment, userId, role, rooms, via: 'ws' };
}
