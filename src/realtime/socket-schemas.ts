import type { TSchema } from 'typebox';
import { ConnectSchema } from './handshake/authenticator.ts';
import { messageSchemas } from './messages/messages.ts';

/** The schema of `data` of every message that a client may send, by type; null for one without. */
export const socketSchemas: Readonly<Record<string, TSchema | null>> = { connect: ConnectSchema, ...messageSchemas };
