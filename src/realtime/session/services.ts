import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import type { Logger } from '../../observability/log.ts';
import type { PendingSockets } from '../handshake/pending-sockets.ts';
import type { Hub } from '../feed/hub.ts';
import type { SocketLimits } from '../socket/socket-writer.ts';
import type { Rooms } from '../rooms/rooms.ts';

/** What the realtime layer of one worker works with. */
export interface Services {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** Id of this worker, under which its sockets are counted. */
  readonly owner: string;
  readonly limits: SocketLimits;
  readonly hub: Hub;
  readonly pendingSockets: PendingSockets;
  readonly rooms: Rooms;
}
