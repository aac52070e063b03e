import type { IncomingHttpHeaders } from 'node:http';

/** The whole answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}
