import * as Type from 'typebox';
import { textOrNull, time } from './field-schemas.ts';

/** A STUN or TURN server. */
export const IceServerSchema = Type.Object({
  urls: Type.Array(Type.String()),
  username: Type.Optional(Type.String()),
  credential: Type.Optional(Type.String()),
});
/** Credentials for the TURN servers. */
export const TurnCredentialsSchema = Type.Object({
  iceServers: Type.Array(IceServerSchema, { description: 'In the form that `RTCPeerConnection` takes.' }),
  username: textOrNull('Null if no TURN server is configured.'),
  password: textOrNull('Null if no TURN server is configured.'),
  ttl: Type.Integer({
    minimum: 0,
    description: 'Seconds for which the credentials are valid; 0 if no TURN server is configured.',
  }),
  uris: Type.Array(Type.String(), { description: 'The TURN servers.' }),
  expiresAt: Type.Optional(time('When the credentials expire; absent if no TURN server is configured.')),
});
