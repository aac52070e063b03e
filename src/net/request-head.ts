import type { CoreRequest } from './core.ts';

/** Where routes of plugins are, which receive all header fields. */
const PLUGIN_PATHS = '/api/v1/plugins/';
const NO_FIELDS: Readonly<Record<string, string>> = {};
const HIDDEN_FIELDS = new Set([
  'authorization',
  'x-service-key',
  'x-service-token',
  'cookie',
  'content-length',
  'transfer-encoding',
  'connection',
]);

/**
 * The request line and the header fields of a request, copied out of the core's request, which is invalid after
 * the first await. Fields that were not sent are ''.
 */
export class RequestHead {
  /** As sent; methods are case-sensitive. */
  readonly method: string;
  /** Begins with a slash; percent-encoded as sent. */
  readonly path: string;
  /** Without the question mark; '' for none. */
  readonly query: string;
  host = '';
  authorization = '';
  contentType = '';
  accept = '';
  acceptEncoding = '';
  origin = '';
  /** All lines in order, joined by commas. */
  forwardedFor = '';
  forwardedProto = '';
  requestId = '';
  /** Null without the header, which an empty one is not. */
  idempotencyKey: string | null = null;
  lastEventId = '';
  ifMatch = '';
  ifNoneMatch = '';
  range = '';
  ifRange = '';
  serviceKey = '';
  serviceToken = '';
  /** The declared length of the body in bytes; null if none is declared, as with a chunked body. */
  contentLength: number | null = null;
  chunked = false;
  /** Whether the client wants the connection closed after the response. */
  connectionClose = false;
  /** The names of the fields that follow a chunked body. */
  trailer = '';
  /**
   * Whether two parsers could disagree on where this request ends or which host it is for. The connection of such a
   * request must be closed without a response, since even the place of a response in it is uncertain.
   */
  ambiguous = false;
  /** All header fields of a request to a plugin, except credentials and framing; empty for any other. */
  fields: Readonly<Record<string, string>> = NO_FIELDS;
  #hasHost = false;

  constructor(request: CoreRequest) {
    this.method = request.getCaseSensitiveMethod();
    this.path = request.getUrl();
    this.query = request.getQuery() ?? '';
    request.forEach((name, value) => this.#set(name, value));
    if (this.path.startsWith(PLUGIN_PATHS)) this.fields = allFields(request);
    if (this.chunked && this.contentLength !== null) this.ambiguous = true;
  }

  /** Whether a body is declared, other than an empty one. */
  get hasBody(): boolean {
    return this.chunked || (this.contentLength ?? 0) > 0;
  }

  #set(name: string, value: string): void {
    switch (name) {
      case 'host':
        if (this.#hasHost) this.ambiguous = true;
        this.#hasHost = true;
        this.host = value;
        break;
      case 'content-length':
        this.#setLength(value);
        break;
      case 'transfer-encoding':
        if (this.chunked || value !== 'chunked') this.ambiguous = true;
        this.chunked = true;
        break;
      case 'connection':
        // The core decides it by the length, too.
        this.connectionClose = value.length === 5;
        break;
      case 'trailer':
        this.trailer = value;
        break;
      case 'authorization':
        this.authorization = value;
        break;
      case 'content-type':
        this.contentType = value;
        break;
      case 'accept':
        this.accept = value;
        break;
      case 'accept-encoding':
        this.acceptEncoding = value;
        break;
      case 'origin':
        this.origin = value;
        break;
      case 'x-forwarded-for':
        this.forwardedFor = this.forwardedFor === '' ? value : `${this.forwardedFor},${value}`;
        break;
      case 'x-forwarded-proto':
        this.forwardedProto = value;
        break;
      case 'x-request-id':
        this.requestId = value;
        break;
      case 'idempotency-key':
        this.idempotencyKey = value;
        break;
      case 'last-event-id':
        this.lastEventId = value;
        break;
      case 'if-match':
        this.ifMatch = value;
        break;
      case 'if-none-match':
        this.ifNoneMatch = value;
        break;
      case 'range':
        this.range = value;
        break;
      case 'if-range':
        this.ifRange = value;
        break;
      case 'x-service-key':
        this.serviceKey = value;
        break;
      case 'x-service-token':
        this.serviceToken = value;
        break;
    }
  }

  #setLength(value: string): void {
    const length = isDigits(value) ? Number(value) : Number.NaN;
    if (!Number.isSafeInteger(length) || (this.contentLength !== null && this.contentLength !== length))
      this.ambiguous = true;
    this.contentLength = length;
  }
}

function allFields(request: CoreRequest): Readonly<Record<string, string>> {
  const fields = new Map<string, string>();
  request.forEach((name, value) => {
    const earlier = fields.get(name);
    if (!HIDDEN_FIELDS.has(name)) fields.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  });
  return Object.fromEntries(fields);
}

function isDigits(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return text !== '';
}
