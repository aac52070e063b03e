/**
 * The reference: uWebSockets.js alone with the same bytes. It checks nothing, stores nothing and has no users.
 *
 * - `POST /api/v1/threads/:id/comments` parses the JSON and answers 201 with it, stringified again.
 * - `GET /api/v1/threads/:id/comments` answers with `--bytes` static bytes.
 * - `POST /publish` publishes the body to every socket of `/api/v1/ws`.
 */
import { parseArgs } from 'node:util';
import uWS from 'uWebSockets.js';

const { values } = parseArgs({ options: { port: { type: 'string' }, bytes: { type: 'string', default: '2' } } });
const page = Buffer.alloc(Number(values.bytes), 'x');
const app = uWS.App();

/** Calls `done` with the whole body, in memory that the core reuses after `done` returns. */
function readBody(res: uWS.HttpResponse, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  res.onAborted(() => undefined);
  res.onData((chunk, isLast) => {
    if (isLast && chunks.length === 0) return done(Buffer.from(chunk));
    chunks.push(Buffer.concat([Buffer.from(chunk)]));
    if (isLast) done(Buffer.concat(chunks));
  });
}

app.post('/api/v1/threads/:id/comments', (res) => {
  readBody(res, (body) => {
    const parsed: unknown = JSON.parse(body.toString());
    res.writeStatus('201 Created').writeHeader('Content-Type', 'application/json').end(JSON.stringify(parsed));
  });
});

app.get('/api/v1/threads/:id/comments', (res) => {
  res.writeHeader('Content-Type', 'application/json').end(page);
});

/**
 * Publishes what arrived in this event loop iteration after it. Inside a request's handler the core holds the only
 * cork, and every message past the 32nd of an iteration would cost a separate system call per socket.
 */
let arrived: Buffer[] = [];
function publishArrived(): void {
  const messages = arrived;
  arrived = [];
  for (const message of messages) app.publish('all', message);
}

app.post('/publish', (res) => {
  readBody(res, (body) => {
    if (arrived.push(Buffer.from(body)) === 1) setImmediate(publishArrived);
    res.writeStatus('201 Created').end();
  });
});

app.get('/readyz', (res) => {
  res.end('ready');
});

app.ws('/api/v1/ws', {
  maxBackpressure: 1024 * 1024,
  closeOnBackpressureLimit: 1,
  open: (socket) => {
    socket.subscribe('all');
  },
});

app.listen('127.0.0.1', Number(values.port), (listening) => {
  if (!listening) throw new Error(`port ${String(values.port)} is taken`);
  console.log('ready');
});
