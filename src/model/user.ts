import * as Type from 'typebox';
import type { Static } from 'typebox';
import { type Metadata, MetadataSchema } from './metadata.ts';
import type { RoomScope } from './room.ts';

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
  /**
   * The rooms of the user's latest token, which decide who is notified; absent while no token was confined. Never shown
   * to clients.
   */
  readonly tokenScope?: TokenScope;
  /**
   * When a backend last changed each field that it has set. A token that was issued before does not change such a
   * field. Never shown to clients.
   */
  readonly setAt?: Readonly<Partial<Record<'name' | 'avatarUrl' | 'email' | 'kind' | 'metadata', string>>>;
}

/** The rooms that a user token is confined to. */
export interface TokenScope {
  readonly rooms: RoomScope;
  /** Time of the token's `iat`, or of its first use if it has none. */
  readonly issuedAt: string;
  /** Id of the key, confined to rooms, that issued the token; absent if there is none. */
  readonly confinedKeyId?: string;
}

/** The body of a create-or-change-user request. */
export const UserPutSchema = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'Display name.' })),
  avatarUrl: Type.Optional(Type.String({ maxLength: 2048, description: 'http(s) URL of a picture.' })),
  email: Type.Optional(Type.String({ maxLength: 320, description: 'Shown to backends only.' })),
  kind: Type.Optional(
    Type.Union([Type.Literal('user'), Type.Literal('bot')], { description: '`bot` for machine authors.' }),
  ),
  metadata: Type.Optional(MetadataSchema),
});
export type UserPut = Static<typeof UserPutSchema>;

/** The fields of other users that browsers see, such as those of the authors of comments. */
export interface UserSummary {
  readonly userId: string;
  readonly name: string | null;
  readonly avatarUrl: string | null;
  readonly kind: UserKind;
}

/** The fields of a user that browsers see. */
export function summaryOf({ userId, name, avatarUrl, kind }: User): UserSummary {
  return { userId, name, avatarUrl, kind };
}
