import type { Config } from '../config/schema.ts';
import type { NodeFacts } from '../domain/nodes.ts';
import type { Context } from '../domain/context.ts';
import type { Logger } from '../observability/log.ts';
import type { Hub } from './feed/hub.ts';
import type { PendingSockets } from './handshake/pending-sockets.ts';
import type { RefusedSockets } from './handshake/refused-sockets.ts';
import type { Rooms } from './rooms/rooms.ts';
import type { Connections } from './session/connections.ts';
import type { SocketLimits } from './socket/socket-writer.ts';

/** The parts of the realtime layer of one worker. */
export interface Services {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** Id of this worker; its counts and records in shared memory carry it. */
  readonly owner: string;
  /** What this worker says of its server to the others that share the store; undefined if no other one can. */
  readonly node?: NodeFacts | undefined;
  readonly limits: SocketLimits;
  readonly hub: Hub;
  readonly connections: Connections;
  readonly pendingSockets: PendingSockets;
  readonly refusedSockets: RefusedSockets;
  readonly rooms: Rooms;
}
