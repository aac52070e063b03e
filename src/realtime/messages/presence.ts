import * as Type from 'typebox';
import type { TSchema } from 'typebox';
import { requireWrite } from '../../domain/access/access.ts';
import { enterRoom } from '../../domain/rooms/rooms.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { CollabError, invalidField } from '../../model/errors.ts';
import type { Connection } from '../session/connection.ts';
import { currentActor, type MessageHandler, EMPTY_REPLY, cachedActor } from './handler.ts';
import type { JoinedRoom } from '../rooms/rooms.ts';
import type { Services } from '../services.ts';

/** Largest payloads that clients send to each other, in bytes of JSON. */
const STATE_BYTES = 4 * 1024;
const CURSOR_BYTES = 1024;
const BROADCAST_BYTES = 8 * 1024;
const SIGNAL_BYTES = 16 * 1024;

const roomId = Type.String({ description: 'A room that the socket has joined.' });
const state = Type.Record(Type.String(), Type.Unknown(), {
  description: 'State of the user that others see. At most 4 KiB.',
});
const inputs = {
  join: new InputSchema(
    Type.Object({ roomId: Type.String({ description: 'The room to join.' }), state: Type.Optional(state) }),
  ),
  leave: new InputSchema(Type.Object({ roomId })),
  update: new InputSchema(Type.Object({ roomId, state })),
  cursor: new InputSchema(Type.Object({ roomId, x: Type.Number(), y: Type.Number() }), { passesOtherFields: true }),
  typing: new InputSchema(
    Type.Object({
      roomId,
      threadId: Type.Optional(
        Type.Union([Type.String({ maxLength: 128 }), Type.Null()], { description: 'Null for a new thread.' }),
      ),
      typing: Type.Boolean(),
    }),
  ),
  broadcast: new InputSchema(Type.Object({ roomId, data: Type.Unknown({ description: 'At most 8 KiB.' }) })),
  signal: new InputSchema(
    Type.Object({
      roomId: Type.Optional(Type.String({ description: 'One that both have joined; not needed.' })),
      to: Type.String({ description: 'The id of a connection.' }),
      data: Type.Unknown({ description: 'At most 16 KiB.' }),
    }),
  ),
};

/** The messages that sockets send to others in a room (docs/realtime.md, "Rooms"), by type. None of them is stored. */
export const presenceMessages: ReadonlyMap<string, MessageHandler> = new Map<string, MessageHandler>([
  ['room.join', join],
  [
    'room.leave',
    (services, connection, data) =>
      inRoom(services, connection, read(inputs.leave, data), (joined) => services.rooms.leave(joined)),
  ],
  [
    'presence.update',
    (services, connection, data) => {
      const input = read(inputs.update, data);
      const presenceState = bounded('data.state', input.state, STATE_BYTES);
      return inRoom(services, connection, input, ({ room, member }) => room.setState(member, presenceState));
    },
  ],
  [
    'cursor',
    (services, connection, data) => {
      const { roomId: id, ...position } = read(inputs.cursor, data);
      bounded('data', position, CURSOR_BYTES);
      return inRoom(services, connection, { roomId: id }, ({ room, member }) => room.sendCursor(member, position));
    },
  ],
  [
    'typing',
    (services, connection, data) => {
      const input = read(inputs.typing, data);
      return inRoom(services, connection, input, ({ room, member }) => {
        requireWrite(cachedActor(connection), room.roomId);
        return room.typing(member, input.threadId ?? null, input.typing);
      });
    },
  ],
  [
    'room.broadcast',
    (services, connection, data) => {
      const input = read(inputs.broadcast, data);
      bounded('data.data', input.data, BROADCAST_BYTES);
      return inRoom(services, connection, input, ({ room, member }) => {
        requireWrite(cachedActor(connection), room.roomId);
        return room.broadcast(member, input.data);
      });
    },
  ],
  ['p2p.signal', signal],
]);

/** The schema of `data` of each of them, by type. */
export const presenceSchemas: Readonly<Record<string, TSchema>> = {
  'room.join': inputs.join.schema,
  'room.leave': inputs.leave.schema,
  'presence.update': inputs.update.schema,
  cursor: inputs.cursor.schema,
  typing: inputs.typing.schema,
  'room.broadcast': inputs.broadcast.schema,
  'p2p.signal': inputs.signal.schema,
};

async function join(services: Services, connection: Connection, data: unknown): Promise<string> {
  const input = read(inputs.join, data);
  const presenceState = input.state === undefined ? undefined : bounded('data.state', input.state, STATE_BYTES);
  await enterRoom(services.ctx, await currentActor(services, connection), input.roomId);
  // The snapshot may be long, so it waits for the backlog like the reply to a read.
  await connection.writer.ready();
  await services.rooms.join(connection, input.roomId, presenceState);
  return JSON.stringify({ roomId: input.roomId });
}

/** Sends data to one other connection in a room that both have joined. */
async function signal(services: Services, connection: Connection, data: unknown): Promise<string> {
  const { roomId: id, to, data: content } = read(inputs.signal, data);
  bounded('data.data', content, SIGNAL_BYTES);
  const candidates = id === undefined ? services.rooms.joinedBy(connection) : [requireJoined(services, connection, id)];
  for (const joined of candidates) {
    // The membership may have ended during the lookup.
    if (!(await joined.room.has(to)) || services.rooms.find(connection, joined.room.roomId) !== joined) continue;
    await joined.room.signal(joined.member, to, content);
    return EMPTY_REPLY;
  }
  throw new CollabError('not_in_room', 'to must be a connection in a room that this socket has joined');
}

async function inRoom(
  services: Services,
  connection: Connection,
  input: { readonly roomId: string },
  act: (joined: JoinedRoom) => Promise<void>,
): Promise<string> {
  await act(requireJoined(services, connection, input.roomId));
  return EMPTY_REPLY;
}

/** The joined room with this id. Throws `not_in_room`. */
function requireJoined({ rooms }: Services, connection: Connection, id: string): JoinedRoom {
  const joined = rooms.find(connection, id);
  if (joined === undefined) throw new CollabError('not_in_room', 'roomId must name a room that this socket has joined');
  return joined;
}

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}

/** Returns the value. Throws `invalid_request` if its JSON is longer than `bytes`. */
function bounded<T>(field: string, value: T, bytes: number): T {
  const length = Buffer.byteLength(JSON.stringify(value));
  if (length <= bytes) return value;
  throw invalidField(field, `must be at most ${bytes} bytes of JSON`, length);
}
