import type { Environment } from '../../model/environments/environment.ts';
import type { Context } from '../context.ts';
import { escapeId } from '../records/partitions.ts';

/**
 * Adds `delta` to the number of open sockets of a user on the worker `owner`. Returns the number over all workers of
 * the sockets that have one limit with these: those of the user, or those of the user with tokens that one confined key
 * issued. Such a key could otherwise open so many that the user had none left.
 *
 * @param confinedKeyId as `UserActor.confinedKeyId`, when the socket connected
 */
export async function adjustSocketCount(
  ctx: Context,
  environment: Environment,
  userId: string,
  confinedKeyId: string | null,
  owner: string,
  delta: number,
): Promise<number> {
  if (confinedKeyId === null) return ctx.shared.count(socketsKey(environment, userId), owner, delta);
  const [ofKey] = await Promise.all([
    ctx.shared.count(`conn-of-key/${environment.id}/${confinedKeyId}/${escapeId(userId)}`, owner, delta),
    ctx.shared.count(confinedSocketsKey(environment, userId), owner, delta),
  ]);
  return ofKey;
}

/** Whether a user has an open socket, on any worker. */
export async function isOnline(ctx: Context, environment: Environment, userId: string): Promise<boolean> {
  return (
    (await ctx.shared.total(socketsKey(environment, userId))) > 0 ||
    (await ctx.shared.total(confinedSocketsKey(environment, userId))) > 0
  );
}

const socketsKey = (environment: Environment, userId: string): string => `conn/${environment.id}/${escapeId(userId)}`;

/** The sockets of a user with the tokens of all confined keys. */
const confinedSocketsKey = (environment: Environment, userId: string): string =>
  `conn-confined/${environment.id}/${escapeId(userId)}`;
