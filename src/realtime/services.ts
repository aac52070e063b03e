import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import type { Logger } from '../log.ts';
import type { Guests } from './guests.ts';
import type { Hub } from './hub.ts';
import type { LineTerms } from './line.ts';
import type { Rooms } from './rooms.ts';

/** What the realtime layer of one worker works with. */
export interface Services {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** Id of this worker, under which its sockets are counted. */
  readonly owner: string;
  readonly terms: LineTerms;
  readonly hub: Hub;
  readonly guests: Guests;
  readonly rooms: Rooms;
}
