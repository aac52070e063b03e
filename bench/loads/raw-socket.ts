import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { type FrameState, type FrameVisitor, walkFrames } from './frames.ts';

/** One buffer for the reads of all sockets: each read is processed before the next one. */
const shared = Buffer.allocUnsafe(256 * 1024);

/** A masked, empty pong. */
const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);

/** A WebSocket that only counts events and answers pings. */
export interface RawSocket {
  readonly socket: Socket;
  readonly opened: Promise<void>;
  /** The number of `comment.created` events received. */
  events: number;
  /** The number of other text frames received. */
  others: number;
  /** Why it was closed; null while it is open. */
  closed: string | null;
}

/**
 * Opens a WebSocket with additional header lines (each ending in CRLF) and counts its frames.
 * `opened` resolves with the 101, or with the first text frame if `greeted`; it rejects on any other response.
 */
export function openRawSocket(
  port: number,
  path: string,
  headers: string,
  greeted: boolean,
  onEvent: (socket: RawSocket) => void,
): RawSocket {
  let settle: { resolve: () => void; reject: (reason: Error) => void } | null = null;
  const opened = new Promise<void>((resolve, reject) => (settle = { resolve, reject }));
  const state: FrameState = { carry: null, skip: 0 };
  let answer: string | null = '';

  const visitor: FrameVisitor = {
    onText(marked) {
      if (marked) {
        raw.events += 1;
        onEvent(raw);
        return;
      }
      raw.others += 1;
      settle?.resolve();
    },
    onPing() {
      raw.socket.write(pong);
    },
    onClose(code, reason) {
      raw.closed ??= `${code} ${reason}`;
    },
  };

  const onHandshake = (chunk: Buffer): void => {
    answer += chunk.toString('latin1');
    const end = answer!.indexOf('\r\n\r\n');
    if (end < 0) return;
    if (!answer!.startsWith('HTTP/1.1 101')) {
      settle?.reject(new Error(`the upgrade was refused: ${answer!.slice(0, 300)}`));
      raw.socket.destroy();
      return;
    }
    const rest = Buffer.from(answer!.slice(end + 4), 'latin1');
    answer = null;
    if (!greeted) settle?.resolve();
    walkFrames(state, rest, visitor);
  };

  const socket = connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: {
      buffer: shared,
      callback: (length, buffer) => {
        const chunk = (buffer as Buffer).subarray(0, length);
        if (answer === null) walkFrames(state, chunk, visitor);
        else onHandshake(chunk);
        return true;
      },
    },
  });
  const raw: RawSocket = { socket, opened, events: 0, others: 0, closed: null };
  socket.on('error', (error) => settle?.reject(error));
  socket.on('close', () => {
    raw.closed ??= `without a close frame, after ${raw.socket.bytesRead} bytes`;
    settle?.reject(new Error(`the socket was closed: ${raw.closed}`));
  });
  const key = randomBytes(16).toString('base64');
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n${headers}\r\n`,
  );
  return raw;
}
