import type { HttpRequest } from 'uWebSockets.js';

/**
 * What a request says before its body, copied out of uWebSockets.js, whose own object is gone after the first await.
 * Header fields that were not sent are ''.
 */
export class RequestHead {
  /** As sent: methods are case-sensitive. */
  readonly method: string;
  /** Starts with a slash; percent-encoded as sent. */
  readonly path: string;
  /** Without its question mark; '' when there is none. */
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
  idempotencyKey = '';
  lastEventId = '';
  ifMatch = '';
  ifNoneMatch = '';
  range = '';
  ifRange = '';
  serviceKey = '';
  serviceToken = '';
  /** Bytes of the body as declared; null when none are, as with a chunked body. */
  contentLength: number | null = null;
  chunked = false;
  /** Whether the client wants the connection closed after the answer. */
  connectionClose = false;
  /** Names of fields that follow a chunked body. */
  trailer = '';
  /**
   * Whether two readers could disagree on where this request ends or whom it is for. Nothing of such a connection can be
   * trusted any more, not even the place of an answer.
   */
  ambiguous = false;
  #hasHost = false;

  constructor(request: HttpRequest) {
    this.method = request.getCaseSensitiveMethod();
    this.path = request.getUrl();
    // The core of Node 20 gives undefined, against its typings, where there is no question mark.
    this.query = (request.getQuery() as string | undefined) ?? '';
    request.forEach((name, value) => this.#take(name, value));
    if (this.chunked && this.contentLength !== null) this.ambiguous = true;
  }

  /** Whether a body is declared that is not empty. */
  get hasBody(): boolean {
    return this.chunked || (this.contentLength ?? 0) > 0;
  }

  #take(name: string, value: string): void {
    switch (name) {
      case 'host':
        if (this.#hasHost) this.ambiguous = true;
        this.#hasHost = true;
        this.host = value;
        break;
      case 'content-length':
        this.#takeLength(value);
        break;
      case 'transfer-encoding':
        if (this.chunked || value !== 'chunked') this.ambiguous = true;
        this.chunked = true;
        break;
      case 'connection':
        // As the core decides it.
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

  #takeLength(value: string): void {
    const length = isDigits(value) ? Number(value) : Number.NaN;
    if (!Number.isSafeInteger(length) || (this.contentLength !== null && this.contentLength !== length)) this.ambiguous = true;
    this.contentLength = length;
  }
}

function isDigits(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return text !== '';
}
