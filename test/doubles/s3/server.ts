import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Test } from 'tap';
import { Bucket, type BucketAnswer, type BucketRequest } from './bucket.ts';
import { type AcceptedKeys, checkSignature, type Refusal } from './signature-check.ts';

/**
 * What a server does to a request instead of answering it: an error; no answer; a connection that is cut while the body
 * is sent, after the request has taken effect, or in the middle of the answer; an error in an answer of 200; an answer of
 * something else.
 */
export type Fault =
  | { readonly kind: 'refuse'; readonly status: number; readonly code: string; readonly extra?: string }
  | { readonly kind: 'hang' | 'cut body' | 'cut after' | 'cut answer' | 'error in 200' | 'garbage' };

/** No answer that is of use, to any request. */
export const refusals: readonly Fault[] = [
  { kind: 'refuse', status: 500, code: 'InternalError' },
  { kind: 'refuse', status: 503, code: 'SlowDown' },
  { kind: 'hang' },
];
/** What can happen to a request with a body, and what to one whose answer has a body. */
export const writeFaults: readonly Fault[] = [...refusals, { kind: 'cut body' }, { kind: 'cut after' }];
export const readFaults: readonly Fault[] = [...refusals, { kind: 'cut answer' }, { kind: 'garbage' }];

/** A fault for the name of a test. */
export function described(fault: Fault): string {
  return fault.kind === 'refuse' ? `${fault.status} ${fault.code}` : fault.kind;
}

/** The part of a request by which a fault is chosen. */
export interface SeenRequest {
  readonly method: string;
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
}

/** Headers that some stores refuse, or do not heed. */
const UNSUPPORTED =
  /^(?:x-amz-checksum-|x-amz-sdk-checksum|x-amz-trailer$|if-none-match$|if-match$|expect$|x-amz-acl$)/;
const REGION = 'garage';

/**
 * A strict S3 server in memory with one bucket, `test-bucket`, in the region `garage`, with the path style. It checks
 * signatures, and refuses what a store that is not Amazon's may refuse: checksums of the SDK, conditional requests, bodies
 * of unknown length, parts that are too small.
 */
export class S3Server {
  readonly bucket = new Bucket();
  readonly keys: { current: AcceptedKeys } = { current: { id: 'test-key', secret: 'test/secret+key' } };
  /** Chooses the fault of a request; null for none. */
  fault: (request: SeenRequest) => Fault | null = () => null;
  /** How far its clock is ahead, in milliseconds. */
  clockAhead = 0;
  /** All requests, such as `PUT test/files/env/a`. */
  readonly seen: string[] = [];
  readonly sockets = new Set<Socket>();
  readonly #http: Server;

  private constructor() {
    this.#http = createServer((request, response) => void this.#receive(request, response));
    this.#http.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => this.sockets.delete(socket));
    });
  }

  /** Starts a server that ends with the test. */
  static async start(t: Test): Promise<S3Server> {
    const server = new S3Server();
    await once(server.#http.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => server.stop());
    return server;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  /** The configuration of a client of it. */
  get options() {
    return {
      url: 's3://test-bucket/test',
      endpoint: `http://127.0.0.1:${this.port}`,
      region: REGION,
      pathStyle: 'auto',
      env: this.env,
    } as const;
  }

  get env(): Record<string, string> {
    const { id, secret, token } = this.keys.current;
    return {
      AWS_ACCESS_KEY_ID: id,
      AWS_SECRET_ACCESS_KEY: secret,
      ...(token === undefined ? {} : { AWS_SESSION_TOKEN: token }),
    };
  }

  /** Cuts all connections and listens no longer. */
  stop(): void {
    this.#http.close();
    for (const socket of this.sockets) socket.destroy();
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const understood = understand(request);
    const fault = this.fault(understood);
    this.seen.push(
      `${understood.method} ${understood.key === '' ? `?${understood.query.get('prefix')}` : understood.key}`,
    );
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        if (fault?.kind === 'cut body') return void request.socket.destroy();
      }
    } catch {
      return;
    }
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'cut body') return void request.socket.destroy();
    if (fault?.kind === 'refuse') return this.#send(request, response, fault);
    if (fault?.kind === 'garbage') return this.#send(request, response, { status: 200, body: '<html>a proxy</html>' });
    if (fault?.kind === 'error in 200')
      return this.#send(request, response, { status: 200, body: errorXml({ status: 500, code: 'InternalError' }) });
    const body = Buffer.concat(chunks);
    const refusal = this.#refusalOf(request, understood, body);
    const answer = refusal ?? this.bucket.handle({ ...understood, headers: request.headers, body });
    if (fault?.kind === 'cut after') return void request.socket.destroy();
    this.#send(request, response, answer, fault?.kind === 'cut answer');
  }

  #refusalOf(request: IncomingMessage, { bucket }: Understood, body: Buffer): Refusal | null {
    const unsupported = Object.keys(request.headers).find((name) => UNSUPPORTED.test(name));
    if (unsupported !== undefined) return { status: 501, code: 'NotImplemented', message: unsupported };
    if (request.headers['transfer-encoding'] !== undefined) return { status: 411, code: 'MissingContentLength' };
    if (['PUT', 'POST'].includes(request.method ?? '') && request.headers['content-length'] === undefined)
      return { status: 411, code: 'MissingContentLength' };
    const now = Date.now() + this.clockAhead;
    const refusal = checkSignature(request, body, { keys: this.keys.current, region: REGION, now });
    if (refusal !== null) return refusal;
    return bucket === 'test-bucket' ? null : { status: 404, code: 'NoSuchBucket', message: 'no such bucket' };
  }

  #send(request: IncomingMessage, response: ServerResponse, answer: BucketAnswer | Refusal, isCut = false): void {
    const body = Buffer.from('code' in answer ? errorXml(answer) : (answer.body ?? ''));
    const headers: Record<string, string> = {
      ...('headers' in answer ? answer.headers : {}),
      date: new Date(Date.now() + this.clockAhead).toUTCString(),
    };
    if (answer.status !== 204) headers['content-length'] = String(body.length);
    response.writeHead(answer.status, headers);
    if (request.method === 'HEAD') return void response.end();
    if (!isCut) return void response.end(body);
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => request.socket.destroy());
  }
}

interface Understood extends Omit<BucketRequest, 'headers' | 'body'> {
  readonly bucket: string;
}

function understand(request: IncomingMessage): Understood {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
  const [, bucket = '', ...rest] = pathname.split('/').map(decodeURIComponent);
  return { method: request.method ?? '', bucket, key: rest.join('/'), query: new Map(searchParams) };
}

function errorXml({ code, message = '', extra = '' }: Refusal): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message>${extra}<RequestId>1</RequestId></Error>`;
}
