import Type, { type Static } from 'typebox';
import { type Metadata, MetadataSchema } from './metadata.ts';

/** A person, or a machine author. */
export type UserKind = 'user' | 'bot';

/** A user as stored. `online` is added when it is read; `email` is shown only to backends. */
export interface User {
  readonly id: string;
  readonly userId: string;
  readonly name: string | null;
  readonly avatarUrl: string | null;
  readonly email: string | null;
  readonly kind: UserKind;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly firstSeenAt: string | null;
  readonly lastSeenAt: string | null;
}

/** The body of a create-or-change-user request. */
export const UserPutSchema = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'Display name.' })),
  avatarUrl: Type.Optional(Type.String({ maxLength: 2048, description: 'http(s) URL of a picture.' })),
  email: Type.Optional(Type.String({ maxLength: 320, description: 'Shown to backends only.' })),
  kind: Type.Optional(Type.Union([Type.Literal('user'), Type.Literal('bot')], { description: '`bot` for machine authors.' })),
  metadata: Type.Optional(MetadataSchema),
});
export type UserPut = Static<typeof UserPutSchema>;
