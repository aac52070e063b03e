import Type, { type TSchema } from 'typebox';
import { requireWrite } from '../../domain/access/access.ts';
import { enterRoom } from '../../domain/rooms/rooms.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { CollabError } from '../../model/errors.ts';
import type { Connection } from '../session/connection.ts';
import { currentActor, type MessageHandler, EMPTY_REPLY, cachedActor } from './handler.ts';
import type { Member } from '../rooms/room.ts';
import type { Services } from '../session/services.ts';

/** Most bytes, as JSON, of what clients say to each other. */
const STATE_BYTES = 4 * 1024;
const CURSOR_BYTES = 1024;
const BROADCAST_BYTES = 8 * 1024;
const SIGNAL_BYTES = 16 * 1024;

const roomId = Type.String({ description: 'A room that the socket has joined.' });
const state = Type.Record(Type.String(), Type.Unknown(), { description: 'What others are to know of the user. At most 4 KiB.' });
const inputs = {
  join: new InputSchema(Type.Object({ roomId: Type.String({ description: 'The room to join.' }), state: Type.Optional(state) })),
  leave: new InputSchema(Type.Object({ roomId })),
  update: new InputSchema(Type.Object({ roomId, state })),
  cursor: new InputSchema(Type.Object({ roomId, x: Type.Number(), y: Type.Number() })),
  typing: new InputSchema(
    Type.Object({
      roomId,
      threadId: Type.Optional(Type.Union([Type.String({ maxLength: 128 }), Type.Null()], { description: 'Null for a new thread.' })),
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

/** What sockets tell the others in a room (docs/realtime.md, "Rooms"), by the type of the message. None of it is stored. */
export const presenceMessages: ReadonlyMap<string, MessageHandler> = new Map<string, MessageHandler>([
  ['room.join', join],
  [
    'room.leave',
    (services, connection, data) => inRoom(connection, read(inputs.leave, data), (member) => services.rooms.leave(member)),
  ],
  [
    'presence.update',
    (_services, connection, data) => {
      const input = read(inputs.update, data);
      const wanted = bounded('data.state', input.state, STATE_BYTES);
      return inRoom(connection, input, (member) => member.room.setState(member, wanted));
    },
  ],
  [
    'cursor',
    (_services, connection, data) => {
      const { roomId: id, ...position } = read(inputs.cursor, data);
      bounded('data', position, CURSOR_BYTES);
      return inRoom(connection, { roomId: id }, (member) => member.room.cursor(member, position));
    },
  ],
  [
    'typing',
    (_services, connection, data) => {
      const input = read(inputs.typing, data);
      return inRoom(connection, input, (member) => {
        requireWrite(cachedActor(connection), member.room.roomId);
        member.room.typing(member, input.threadId ?? null, input.typing);
      });
    },
  ],
  [
    'room.broadcast',
    (_services, connection, data) => {
      const input = read(inputs.broadcast, data);
      bounded('data.data', input.data, BROADCAST_BYTES);
      return inRoom(connection, input, (member) => {
        requireWrite(cachedActor(connection), member.room.roomId);
        member.room.broadcast(member, input.data);
      });
    },
  ],
  ['p2p.signal', signal],
]);

async function join(services: Services, connection: Connection, data: unknown): Promise<string> {
  const input = read(inputs.join, data);
  const wanted = input.state === undefined ? undefined : bounded('data.state', input.state, STATE_BYTES);
  await enterRoom(services.ctx, await currentActor(services, connection), input.roomId);
  // The answer comes after the snapshot, which may be long: see `reads`.
  await connection.writer.ready();
  await services.rooms.join(connection, input.roomId, wanted);
  return JSON.stringify({ roomId: input.roomId });
}

/** Hands something to one other connection in a room that both have joined. */
function signal(_services: Services, connection: Connection, data: unknown): Promise<string> {
  const { roomId: wanted, to, data: content } = read(inputs.signal, data);
  bounded('data.data', content, SIGNAL_BYTES);
  const members = wanted === undefined ? [...(connection.memberships?.values() ?? [])] : [memberOf(connection, wanted)];
  const member = members.find(({ room }) => room.has(to));
  if (member === undefined) throw new CollabError('not_in_room', 'to must be a connection in a room that this socket has joined');
  member.room.signal(member, to, content);
  return Promise.resolve(EMPTY_REPLY);
}

function inRoom(connection: Connection, input: { readonly roomId: string }, act: (member: Member) => void): Promise<string> {
  act(memberOf(connection, input.roomId));
  return Promise.resolve(EMPTY_REPLY);
}

/** Throws `not_in_room`. */
function memberOf(connection: Connection, id: string): Member {
  const member = connection.memberships?.get(id);
  if (member === undefined) throw new CollabError('not_in_room', 'roomId must name a room that this socket has joined');
  return member;
}

function read<S extends TSchema>(input: InputSchema<S>, data: unknown) {
  return validate(input, data ?? {}, 'data');
}

/** The value itself. Throws `invalid_request` when its JSON is too long. */
function bounded<T>(field: string, value: T, bytes: number): T {
  if (Buffer.byteLength(JSON.stringify(value)) <= bytes) return value;
  throw new CollabError('invalid_request', `${field} must be at most ${bytes} bytes of JSON`);
}
