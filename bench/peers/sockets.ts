/**
 * The real-time part that a team would write with ws: the token is checked at the upgrade, a change is sent to every
 * socket.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';

/** The open sockets. */
export interface Sockets {
  /** Sends a text to every open socket; it is encoded once. */
  broadcast(text: string): void;
  /** Sends a text to the sockets of a user. */
  send(userId: string, text: string): void;
}

/**
 * Serves `/api/v1/ws` on the server, for clients with the publishable key and an HS256 token signed with the secret.
 */
export function serveSockets(server: Server, credentials: { publishableKey: string; jwtSecret: string }): Sockets {
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 64 * 1024 });
  const alive = new WeakSet<WebSocket>();
  const ofUsers = new Map<string, Set<WebSocket>>();

  server.on('upgrade', (request, socket, head) => {
    const userId = authenticate(request, credentials);
    if (userId === null) {
      socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n');
      return;
    }
    wss.handleUpgrade(request, socket, head, (client) => {
      alive.add(client);
      client.on('pong', () => alive.add(client));
      client.on('error', () => client.terminate());
      const own = ofUsers.get(userId) ?? new Set();
      ofUsers.set(userId, own.add(client));
      client.on('close', () => own.delete(client) && own.size === 0 && ofUsers.delete(userId));
      client.send(JSON.stringify({ type: 'welcome', data: { userId } }));
    });
  });

  setInterval(() => {
    for (const client of wss.clients) {
      if (!alive.delete(client)) client.terminate();
      else client.ping();
    }
  }, 30_000).unref();

  const sendTo = (clients: Iterable<WebSocket>, text: string): void => {
    const bytes = Buffer.from(text);
    for (const client of clients) if (client.readyState === WebSocket.OPEN) client.send(bytes, { binary: false });
  };
  return {
    broadcast: (text) => sendTo(wss.clients, text),
    send: (userId, text) => sendTo(ofUsers.get(userId) ?? [], text),
  };
}

function authenticate(
  request: IncomingMessage,
  credentials: { publishableKey: string; jwtSecret: string },
): string | null {
  const token = request.headers['x-service-token'];
  if (request.headers['x-service-key'] !== credentials.publishableKey || typeof token !== 'string') return null;
  const [header, payload, signature] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined) return null;
  const expected = createHmac('sha256', credentials.jwtSecret).update(`${header}.${payload}`).digest();
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub: string; exp: number };
  return claims.exp * 1000 > Date.now() ? claims.sub : null;
}
