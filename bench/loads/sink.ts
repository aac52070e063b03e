/**
 * The load of the socket cases: keeps raw sockets open, fires bursts, and reports when the last socket has the last
 * event.
 */
import { openRawSocket, type RawSocket } from './raw-socket.ts';
import { preparePosts } from './posts.ts';
import type { BurstResult, SinkAnswer, SinkCommand } from './protocol.ts';

/** Concurrent handshakes. */
const openAtOnce = 64;
const burstLimitMs = 30_000;

let sockets: RawSocket[] = [];
let expected = 0;
let complete = 0;
/** Attempts to open a socket that the server cuts off. */
let lost = 0;
let onAllComplete: () => void = () => undefined;

function onEvent(socket: RawSocket): void {
  if (socket.events !== expected) return;
  complete += 1;
  if (complete === sockets.length) onAllComplete();
}

async function open(command: SinkCommand & { do: 'open' }): Promise<SinkAnswer> {
  const started = performance.now();
  lost = 0;
  const waiting = [...command.headers];
  const opened: RawSocket[] = [];
  const client = async (): Promise<void> => {
    for (let headers = waiting.pop(); headers !== undefined; headers = waiting.pop()) {
      opened.push(await openPersistently(command, headers));
    }
  };
  await Promise.all(Array.from({ length: openAtOnce }, client));
  sockets = [...sockets, ...opened];
  return { done: 'open', milliseconds: performance.now() - started, lost };
}

/** Opens a socket, with at most three attempts. */
async function openPersistently(command: SinkCommand & { do: 'open' }, headers: string): Promise<RawSocket> {
  for (let tries = 1; ; tries += 1) {
    const raw = openRawSocket(command.port, command.path, headers, command.greeted, onEvent);
    try {
      await raw.opened;
      return raw;
    } catch (error) {
      if (tries === 3) throw error;
      lost += 1;
    }
  }
}

async function burst(command: SinkCommand & { do: 'burst' }): Promise<SinkAnswer & BurstResult> {
  const gone = sockets.filter((socket) => socket.closed !== null);
  if (gone.length > 0) throw new Error(`${gone.length} of ${sockets.length} sockets were closed: ${gone[0]!.closed}`);
  const posts = await preparePosts(command.port, command.requests);
  for (const socket of sockets) socket.events = 0;
  expected = posts.length;
  complete = 0;
  const all = new Promise<boolean>((resolve) => {
    const limit = setTimeout(() => resolve(false), burstLimitMs);
    onAllComplete = () => {
      clearTimeout(limit);
      resolve(true);
    };
  });

  const started = performance.now();
  for (const post of posts) post.send();
  await all;
  const milliseconds = performance.now() - started;

  const statuses = await Promise.all(posts.map((post) => post.status));
  for (const post of posts) post.close();
  return {
    done: 'burst',
    milliseconds,
    deliveries: sockets.reduce((sum, socket) => sum + socket.events, 0),
    incomplete: sockets.filter((socket) => socket.events !== expected).length,
    fewest: Math.min(...sockets.map((socket) => socket.events)),
    most: Math.max(...sockets.map((socket) => socket.events)),
    refused: statuses.filter((status) => status !== 201).length,
  };
}

async function close(): Promise<SinkAnswer> {
  const closing = sockets
    .filter((raw) => raw.socket.destroyed === false)
    .map((raw) => new Promise((resolve) => raw.socket.once('close', resolve)));
  for (const raw of sockets) raw.socket.destroy();
  await Promise.all(closing);
  sockets = [];
  return { done: 'close' };
}

function run(command: SinkCommand): Promise<SinkAnswer> {
  if (command.do === 'open') return open(command);
  return command.do === 'burst' ? burst(command) : close();
}

process.on('message', (message) => {
  void run(message as SinkCommand)
    .catch((error: unknown): SinkAnswer => ({ done: 'failed', reason: String(error) }))
    .then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit(0));
