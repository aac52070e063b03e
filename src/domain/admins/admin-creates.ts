import type { Admin } from '../../model/environments/admin.ts';
import type { Context } from '../context.ts';
import { findEnvironmentWithin, prepareSignedEnvironment } from '../environments/environments.ts';
import { type Idempotency, withEncryptedIdempotency, type IdempotentResponse } from '../idempotency.ts';
import { presentNewKey } from '../access/key-view.ts';
import { prepareKeyCreation, prepareKeyRotation } from '../access/keys.ts';

/**
 * Creates an environment with a secret that signs user tokens, and returns
 * `{"environment":…,"jwtSecret":…,"jwtKid":…}`. `input` is the parsed JSON body. Throws `invalid_request`,
 * `slug_taken`, `idempotency_key_reused`.
 */
export async function createEnvironmentAsAdmin(
  ctx: Context,
  admin: Admin,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  const create = prepareSignedEnvironment(ctx, input);
  return withEncryptedIdempotency(ctx, admin, idempotency, async (tx) => created(await create(tx)));
}

/**
 * Creates a key of the environment with this id or slug, and returns `{"key":…}` with its value. `input` is the parsed
 * JSON body. Throws `invalid_request`, `environment_not_found`, `idempotency_key_reused`.
 */
export async function createKeyAsAdmin(
  ctx: Context,
  admin: Admin,
  environment: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  const create = prepareKeyCreation(ctx, input);
  return withEncryptedIdempotency(ctx, admin, idempotency, async (tx) => {
    const newKey = await create(tx, await findEnvironmentWithin(tx, environment));
    return created({ key: presentNewKey(newKey) });
  });
}

/**
 * Replaces a key as `rotateKey` does, and returns `{"key":…,"replaces":…}` with the value of the new key. `input` is
 * the parsed JSON body. Throws `invalid_request`, `key_not_found`, `idempotency_key_reused`.
 */
export async function rotateKeyAsAdmin(
  ctx: Context,
  admin: Admin,
  keyId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  const rotate = prepareKeyRotation(ctx, keyId, input);
  return withEncryptedIdempotency(ctx, admin, idempotency, async (tx) =>
    created({ key: presentNewKey(await rotate(tx)), replaces: keyId }),
  );
}

function created(body: object): { status: 201; body: string } {
  return { status: 201, body: JSON.stringify(body) };
}
