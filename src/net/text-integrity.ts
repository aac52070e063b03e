import { connect } from 'node:net';
import type { HttpServer } from './core.ts';

/** Whether text arrived unchanged; `untested` if nothing arrived within 5 s or the server could not be reached. */
export type Integrity = 'intact' | 'corrupted' | 'untested';

/** The result of `testTextIntegrity`: `corrupted` if an HTTP response or a WebSocket frame was. */
export interface TextIntegrity {
  /** Text passed to the core as a string. */
  readonly strings: Integrity;
  /** Text passed to the core as bytes, as the server passes everything that is not ASCII (docs/decisions/0013). */
  readonly bytes: Integrity;
}

const TEXT = 'é';
const BYTES = Buffer.from(TEXT);
const MESSAGE = Buffer.from([0x81, BYTES.length, ...BYTES]);
/** A publication, a message and a close frame with 1000 and a reason. */
const FRAMES = Buffer.from([...MESSAGE, ...MESSAGE, 0x88, BYTES.length + 2, 0x03, 0xe8, ...BYTES]);
const TIMEOUT_MS = 5_000;
const HANDSHAKE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
];

/**
 * Sends text through the core over the loopback interface and compares what arrives. Some builds of the core corrupt
 * text, and their version numbers do not show it. Takes some milliseconds. Never rejects.
 *
 * @param server has no routes and does not listen yet; it is closed by the time this resolves
 */
export async function testTextIntegrity(server: HttpServer): Promise<TextIntegrity> {
  const port = serveText(server);
  try {
    const [strings, bytes] = await Promise.all([
      requestText(await port, '/strings'),
      requestText(await port, '/bytes'),
    ]);
    return { strings, bytes };
  } catch {
    return { strings: 'untested', bytes: 'untested' };
  } finally {
    server.close();
  }
}

/** Serves the text in responses and in frames, and ends each connection after it. Returns the port. */
function serveText(server: HttpServer): Promise<number> {
  const { app } = server;
  for (const [path, text] of [
    ['/strings', TEXT],
    ['/bytes', BYTES],
  ] as const) {
    app.any(path, (response) => void response.end(text, true));
    app.ws(path, {
      open: (socket) => {
        socket.subscribe(path);
        app.publish(path, text, false, false);
        socket.send(text, false, false);
        socket.end(1000, text);
      },
    });
  }
  return server.listen('127.0.0.1', 0);
}

async function requestText(port: number, path: string): Promise<Integrity> {
  const [body, frames] = await Promise.all([bytesAfterHead(port, path, []), bytesAfterHead(port, path, HANDSHAKE)]);
  if (body === null || frames === null) return 'untested';
  return body.equals(BYTES) && frames.equals(FRAMES) ? 'intact' : 'corrupted';
}

/**
 * Sends a request and returns what follows the head of the response until the connection ends; null if there is no
 * response. Rejects if nothing listens.
 */
function bytesAfterHead(port: number, path: string, headers: readonly string[]): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1');
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const bytes = Buffer.concat(chunks);
      const end = bytes.indexOf('\r\n\r\n');
      resolve(end < 0 ? null : bytes.subarray(end + 4));
    });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
    socket.write([`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n'));
  });
}
