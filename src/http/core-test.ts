import { connect } from 'node:net';
import type { HttpServer } from './listen.ts';

/**
 * How text arrives that the core was given: `utf8` as it should; `latin1` as one byte for each character up to U+00FF;
 * `other` as anything else; `untested` when nothing arrived within 5 s, or nothing could be connected to.
 */
export type Encoding = 'utf8' | 'latin1' | 'other' | 'untested';

/** What `testCore` found, in HTTP answers and WebSocket frames alike. */
export interface CoreTest {
  /** Text given as a string. */
  readonly strings: Encoding;
  /** Text given as bytes, which is how the server gives whatever is not ASCII (docs/decisions/0013). */
  readonly bytes: Encoding;
}

const TEXT = 'é';
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
    const [strings, bytes] = await Promise.all([encodingOf(await port, '/strings'), encodingOf(await port, '/bytes')]);
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
  for (const [path, text] of [['/strings', TEXT], ['/bytes', Buffer.from(TEXT)]] as const) {
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

async function encodingOf(port: number, path: string): Promise<Encoding> {
  const [answer, frames] = await Promise.all([received(port, path, []), received(port, path, HANDSHAKE)]);
  if (answer === null || frames === null) return 'untested';
  const encoding = (['utf8', 'latin1'] as const).find((tried) => answer.equals(Buffer.from(TEXT, tried)) && frames.equals(framesIn(tried)));
  return encoding ?? 'other';
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

/** A publication, a message and the reason of a close frame, as the core frames them. */
function framesIn(encoding: 'utf8' | 'latin1'): Buffer {
  const text = Buffer.from(TEXT, encoding);
  const message = Buffer.concat([Buffer.from([0x81, text.length]), text]);
  return Buffer.concat([message, message, Buffer.from([0x88, text.length + 2, 0x03, 0xe8]), text]);
}
