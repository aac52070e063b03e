import type { Test } from 'tap';
import type { TokenRequest } from '../../src/domain/access/tokens.ts';
import { listPresence, presenceKey } from '../../src/domain/rooms/presence.ts';
import { createWorld, type Flags, type Ports, startWorker, type Worker, type World } from './realtime.ts';
import type { Frame, TestSocket } from './socket.ts';

/** A presence row, or any other JSON object. */
export type Row = Record<string, unknown>;

/** Two workers of one cluster. */
export interface TwoWorkers {
  readonly world: World;
  readonly one: Worker;
  readonly two: Worker;
  /** Opens a socket of a user and resolves after its welcome. */
  open(worker: Worker, request: Partial<TokenRequest> & { userId: string }): Promise<TestSocket>;
  /** Opens a socket that joins a room. */
  enter(worker: Worker, userId: string, state?: object, roomId?: string): Promise<TestSocket>;
  /** Advances the clock; both workers do what is due then. */
  advance(ms: number): void;
}

/** Starts two workers of one world. They stop at the end of the test. */
export async function startTwoWorkers(t: Test, flags: Flags = {}, ports: Ports = {}): Promise<TwoWorkers> {
  const world = await createWorld(t, ports);
  const [one, two] = [await startWorker(t, world, flags, 'w1'), await startWorker(t, world, flags, 'w2')];
  const open: TwoWorkers['open'] = async (worker, request) => worker.join(await world.token(request));
  return {
    world,
    one,
    two,
    open,
    enter: async (worker, userId, state, roomId = 'lobby') => {
      const socket = await open(worker, { userId });
      const { type, error } = await socket.request('room.join', { roomId, state });
      if (type !== 'ok') throw new Error(error?.message);
      return socket;
    },
    advance: (ms) => {
      world.clock.advance(ms);
      for (const { realtime } of [one, two]) realtime.tick();
    },
  };
}

/**
 * The users of a room as a socket knows them: the last snapshot with all later changes. Throws if a change does not
 * fit.
 */
export function membersOf(socket: TestSocket, roomId = 'lobby'): Map<string, Row> {
  const members = new Map<string, Row>();
  for (const { type, roomId: room, data = {} } of socket.frames) {
    if (room !== roomId) continue;
    const userId = String(data['userId']);
    if (type === 'presence.snapshot') {
      members.clear();
      for (const row of data['items'] as Row[]) members.set(String(row['userId']), row);
    }
    if (type === 'presence.joined') {
      if (members.has(userId)) throw new Error(`${userId} joined twice`);
      members.set(userId, data);
    }
    if (type === 'presence.updated') {
      if (!members.has(userId)) throw new Error(`${userId} was updated without being there`);
      members.set(userId, data);
    }
    if (type === 'presence.left' && !members.delete(userId)) throw new Error(`${userId} left without being there`);
  }
  return members;
}

/** The state of a user in the lobby as a socket knows it. */
export const stateOf = (socket: TestSocket, userId: string): Row =>
  (membersOf(socket).get(userId)?.['state'] ?? {}) as Row;
/** The ids of the users in a room as a socket knows them, sorted. */
export const namesOf = (socket: TestSocket, roomId?: string): string[] =>
  [...membersOf(socket, roomId).keys()].toSorted();

/** Resolves once a socket knows exactly these users in the lobby. */
export async function sees(socket: TestSocket, ...userIds: string[]): Promise<void> {
  await socket.until(() => namesOf(socket).join() === userIds.toSorted().join(), `a room of ${userIds.join()}`);
}

/** The snapshots and changes of presence that a socket has received. */
export const presenceFrames = (socket: TestSocket): Frame[] =>
  socket.frames.filter(({ type }) => type.startsWith('presence.'));

/**
 * Resolves once everything sent by the worker of `from` before has reached the worker of `to`: a broadcast arrives
 * after it.
 */
export async function flushBus(from: TestSocket, to: TestSocket, roomId = 'lobby'): Promise<void> {
  const mark = Math.random();
  await from.request('room.broadcast', { roomId, data: { mark } });
  await to.until(
    () => to.frames.some(({ type, data }) => type === 'room.broadcast' && data?.['mark'] === mark),
    'the mark',
  );
}

/** Resolves once the worker of a member has applied every change that has reached it: its snapshot comes after them. */
export async function refresh(member: TestSocket, roomId = 'lobby'): Promise<void> {
  await member.request('room.join', { roomId });
}

/** The rows of REST. */
export async function restRows({ ctx, backend }: World, roomId = 'lobby'): Promise<Row[]> {
  return (JSON.parse(await listPresence(ctx, backend, roomId)) as { items: Row[] }).items;
}

/**
 * Resolves once shared memory has as many open connections in the lobby, and has noted the loss of the others: their
 * grace period has begun, and the clock may be turned.
 */
export async function openInLobby({ ctx, environment }: World, count: number): Promise<void> {
  const open = async (): Promise<number> =>
    (await ctx.shared.list(presenceKey(environment.id, 'lobby'))).filter(({ owner }) => owner !== '').length;
  while ((await open()) !== count) await new Promise((resolve) => setImmediate(resolve));
}

/** The type and error code of a reply. */
export const refusal = ({ type, error }: Frame): unknown => [type, error?.code];
