import { connect } from 'node:net';
import type { HttpServer } from './listen.ts';

/** How text arrives that the core was given; `untested` when nothing arrived within 5 s, or nothing could be connected to. */
export type Arrived = 'intact' | 'corrupted' | 'untested';

/** What `testCore` found: `corrupted` when an HTTP answer or a WebSocket frame was. */
export interface CoreTest {
  /** Text given as a string. */
  readonly strings: Arrived;
  /** Text given as bytes, which is how the server gives whatever is not ASCII (docs/decisions/0013). */
  readonly bytes: Arrived;
}

const TEXT = 'é';
const BYTES = Buffer.from(TEXT);
const MESSAGE = Buffer.from([0x81, BYTES.length, ...BYTES]);
/** A publication, a message and a close frame with 1000 and a reason. */
const FRAMES = Buffer.from([...MESSAGE, ...MESSAGE, 0x88, BYTES.length + 2, 0x03, 0xe8, ...BYTES]);
const PATIENCE_MS = 5_000;
const HANDSHAKE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='];

/**
 * Sends text through the core, over the loopback interface, and compares what arrives: there are builds that corrupt text,
 * and no version number tells which. Takes some milliseconds. Never rejects.
 *
 * @param server without routes and not listening yet; it is closed when this resolves
 */
export async function testCore(server: HttpServer): Promise<CoreTest> {
  const port = listen(server);
  try {
    const [strings, bytes] = await Promise.all([look(await port, '/strings'), look(await port, '/bytes')]);
    return { strings, bytes };
  } catch {
    return { strings: 'untested', bytes: 'untested' };
  } finally {
    server.close();
  }
}

/** Serves text to whoever asks, in an answer or in frames, and ends the connection. */
function listen(server: HttpServer): Promise<number> {
  const { app } = server;
  for (const [path, text] of [['/strings', TEXT], ['/bytes', BYTES]] as const) {
    app.get(path, (response) => void response.end(text, true));
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

async function look(port: number, path: string): Promise<Arrived> {
  const [answer, frames] = await Promise.all([received(port, path, []), received(port, path, HANDSHAKE)]);
  if (answer === null || frames === null) return 'untested';
  return answer.equals(BYTES) && frames.equals(FRAMES) ? 'intact' : 'corrupted';
}

/** What follows the head of an answer until the connection ends; null when there is none. Rejects when nobody listens. */
function received(port: number, path: string, headers: readonly string[]): Promise<Buffer | null> {
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
    socket.setTimeout(PATIENCE_MS, () => socket.destroy());
    socket.write([`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n'));
  });
}
