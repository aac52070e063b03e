import { connect, type Socket } from 'node:net';

/** A connection that carries one request. */
export interface Post {
  send(): void;
  /** Resolves with the status of the response, or with 0 if the connection closed without one. */
  readonly status: Promise<number>;
  close(): void;
}

/** Opens one connection per request without sending anything. */
export async function preparePosts(port: number, requests: readonly string[]): Promise<Post[]> {
  return Promise.all(requests.map((request) => preparePost(port, Buffer.from(request))));
}

async function preparePost(port: number, request: Buffer): Promise<Post> {
  const socket = await connected(port);
  const status = new Promise<number>((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(Number(chunk.toString('latin1', 9, 12))));
    socket.once('close', () => resolve(0));
  });
  return { send: () => void socket.write(request), status, close: () => void socket.destroy() };
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
  });
}
