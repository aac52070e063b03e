import type { VerifiedClaims } from '../../domain/access/tokens.ts';
import { recordUserFromToken } from '../../domain/users/users.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { Services } from '../services.ts';

/** Records the user of a token. A failing store is only logged, because it must not prevent reading. */
export async function recordUser(
  { ctx, log }: Services,
  environment: Environment,
  claims: VerifiedClaims,
): Promise<void> {
  try {
    await recordUserFromToken(ctx, environment, claims, 'ws');
  } catch (error) {
    log.warn({ err: error, user: claims.userId }, 'the user of a WebSocket could not be recorded');
  }
}
