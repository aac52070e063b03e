import Type, { type Static } from 'typebox';

/** What a backend may ask of a token that it has made for one of its users. */
export const TokenCreateSchema = Type.Object({
  ttl: Type.Optional(Type.Integer({ minimum: 60, maximum: 86_400, description: 'Seconds it is good for: 60 to 86 400, 3 600 when absent.' })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'Display name; the user takes it over.' })),
  avatarUrl: Type.Optional(Type.String({ maxLength: 2048, description: 'http(s) address of a picture; the user takes it over.' })),
  role: Type.Optional(
    Type.Union([Type.Literal('viewer'), Type.Literal('member'), Type.Literal('moderator')], { description: '`member` when absent.' }),
  ),
  rooms: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 129 }), { maxItems: 100, description: 'Room ids and `prefix*` that it is confined to; all when absent.' }),
  ),
});
export type TokenCreate = Static<typeof TokenCreateSchema>;
