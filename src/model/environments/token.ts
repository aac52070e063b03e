import * as Type from 'typebox';
import type { Static } from 'typebox';
import { roleSchema } from '../role-schema.ts';

/** The body of a request for a user token. */
export const TokenCreateSchema = Type.Object({
  ttl: Type.Optional(
    Type.Integer({ minimum: 60, maximum: 86_400, description: 'Lifetime in seconds: 60 to 86 400, 3 600 by default.' }),
  ),
  name: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'Display name, which is also stored with the user.' }),
  ),
  avatarUrl: Type.Optional(
    Type.String({ maxLength: 2048, description: 'http(s) URL of a picture, which is also stored with the user.' }),
  ),
  role: Type.Optional(roleSchema({ description: '`member` by default.' })),
  rooms: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 513 }), {
      maxItems: 100,
      description: 'Room ids and `prefix*` that the token is confined to; all rooms when absent.',
    }),
  ),
});
export type TokenCreate = Static<typeof TokenCreateSchema>;
