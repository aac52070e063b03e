import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import type { TrustedProxies } from '../../net/trusted-proxies.ts';
import type { Logger } from '../../observability/log.ts';
import type { RequestMeter } from '../core/request-meter.ts';
import type { OpenStreams } from './open-streams.ts';
import type { UploadThrottle } from './upload-throttle.ts';

/** Dependencies of the API of one process. */
export interface ApiServices {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly proxies: TrustedProxies;
  readonly streams: OpenStreams;
  readonly uploads: UploadThrottle;
  /** The text of the AsyncAPI document; null where there is no WebSocket. */
  readonly asyncapi: (() => string) | null;
  /** Null while nothing is measured. */
  readonly meter: RequestMeter | null;
}
