import type { UserActor } from '../../domain/context.ts';
import { withBaseUrl } from '../../domain/files/file-urls.ts';
import { beginUpload, type Upload } from '../../domain/files/uploads.ts';
import { CollabError } from '../../model/errors.ts';
import type { Attachment } from '../../model/attachment.ts';
import type { ApiRequest } from './api-request.ts';
import { boundaryOf, MultipartParser, type MultipartPiece } from '../core/multipart.ts';

/** Most bytes of a body besides its file: other parts, which are passed over, and headers. */
const MOST_OTHER_BYTES = 1024 * 1024;

const FILE_PART = 'file';

/**
 * Takes in the file of a multipart body while it comes, and gives the attachment that it has become; null when the client
 * has gone. Throws `invalid_request`, `invalid_content_type`, `payload_too_large` and as `beginUpload` and `Upload` do.
 */
export function receiveUpload(request: ApiRequest): Promise<Attachment | null> {
  return request.services.uploads.upload(() => receive(request));
}

async function receive(request: ApiRequest): Promise<Attachment | null> {
  const { exchange, services } = request;
  const { contentType, contentLength } = exchange.head;
  const baseUrl = request.baseUrl();
  if (baseUrl === '') throw new CollabError('invalid_request', 'Host must be the name of the server');
  const receiver = new FileReceiver(request, boundaryOf(contentType), contentLength ?? 0);
  const stream = exchange.streamBody();
  try {
    for (;;) {
      const bytes = await stream.read();
      if (bytes === 'gone') return null;
      if (bytes === 'end') break;
      await services.uploads.chunk(() => receiver.take(bytes));
    }
    const attachment = await receiver.finish();
    services.meter?.uploaded(attachment.type, attachment.sizeBytes);
    return withBaseUrl(attachment, baseUrl);
  } finally {
    await receiver.discard();
  }
}

/** Picks the one part that matters out of a body. */
class FileReceiver {
  readonly #request: ApiRequest;
  readonly #parser: MultipartParser;
  readonly #leastFileBytes: number;
  #upload: Upload | null = null;
  /** Whether the part that comes is the file. */
  #isFile = false;
  #otherBytes = 0;

  constructor(request: ApiRequest, boundary: string, contentLength: number) {
    this.#request = request;
    this.#parser = new MultipartParser(boundary);
    this.#leastFileBytes = contentLength - MOST_OTHER_BYTES;
  }

  async take(bytes: Buffer): Promise<void> {
    this.#otherBytes += bytes.length;
    for (const piece of this.#parser.push(bytes)) await this.#takePiece(piece);
    if (this.#otherBytes > MOST_OTHER_BYTES) throw new CollabError('payload_too_large', `All but the file must be at most ${MOST_OTHER_BYTES} bytes`);
  }

  async finish(): Promise<Attachment> {
    if (!this.#parser.over) throw new CollabError('invalid_request', 'The body ends before its last boundary');
    if (this.#upload === null) throw new CollabError('invalid_request', 'No file provided: send one part named file');
    return this.#upload.finish();
  }

  async discard(): Promise<void> {
    await this.#upload?.discard();
  }

  async #takePiece(piece: MultipartPiece): Promise<void> {
    if (piece.type === 'part') {
      this.#isFile = piece.head.name === FILE_PART;
      if (this.#isFile) await this.#begin(piece.head.filename ?? '', piece.head.contentType);
    } else if (piece.type === 'data' && this.#isFile) {
      this.#otherBytes -= piece.bytes.length;
      await this.#upload?.write(piece.bytes);
    }
  }

  async #begin(filename: string, contentType: string): Promise<void> {
    if (this.#upload !== null) throw new CollabError('invalid_request', 'Send one file at a time: there are two parts named file');
    const { ctx, actor, config } = this.#request;
    if (!isUser(actor)) throw new Error('only users upload');
    this.#upload = await beginUpload(ctx, actor, config, { filename, contentType, leastBytes: this.#leastFileBytes });
  }
}

const isUser = (actor: ApiRequest['actor']): actor is UserActor => actor.kind === 'user';
