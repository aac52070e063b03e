import type { VerifiedClaims } from '../../domain/access/tokens.ts';
import { recordUserFromToken } from '../../domain/users/users.ts';
import type { Environment } from '../../model/environment.ts';
import type { Services } from '../session/services.ts';

/** Makes the user of a token known. A store that takes no writes only logs it: it must not keep people from reading. */
export async function recordUser({ ctx, log }: Services, environment: Environment, claims: VerifiedClaims): Promise<void> {
  try {
    await recordUserFromToken(ctx, environment, claims, 'ws');
  } catch (error) {
    log.warn({ err: error, user: claims.userId }, 'the user of a WebSocket could not be recorded');
  }
}
