import { CollabSession } from '../../client/session/session.ts';
import type { TokenProvider } from '../../client/session/options.ts';
import type * as SharedSocketModule from '../../client/shared-socket.ts';

/** The module of the shared socket; empty if it could not be loaded. */
export type SharedSocketPart = Partial<typeof SharedSocketModule>;

/** The attributes of the widget that say how it connects. */
interface ConnectionSettings {
  readonly baseUrl: string;
  readonly publishableKey: string;
  readonly token: string;
  readonly tokenProvider: TokenProvider | null;
}

/** Where this script was loaded from: the server, unless the page says otherwise. */
const scriptOrigin = new URL(import.meta.url).origin;

/**
 * Loads what the tabs of the browser share a connection with. Never rejects: without it the widget has a connection of
 * its own.
 */
export async function loadSharedSocket(): Promise<SharedSocketPart> {
  const loading = import(`${scriptOrigin}/sdk/shared-socket.js`) as Promise<SharedSocketPart>;
  return await loading.catch(() => ({}));
}

/**
 * Opens the session of a widget that was given none. Each renewal asks for the token that is set then.
 *
 * @param shared the socket to share with other tabs, if that is wanted
 * @throws if the settings cannot be used, such as an address that is none
 */
export function openOwnSession(settings: ConnectionSettings, shared: SharedSocketPart | null): CollabSession {
  const token: TokenProvider = (request) => settings.tokenProvider?.(request) ?? settings.token;
  return new CollabSession({
    serverUrl: settings.baseUrl === '' ? scriptOrigin : settings.baseUrl,
    publishableKey: settings.publishableKey,
    token,
    WebSocket: shared?.SharedSocket,
  });
}
