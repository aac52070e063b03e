import type { UserActor } from '../../domain/access/actor.ts';
import { withBaseUrl } from '../../domain/files/file-urls.ts';
import { guessedType, SIGNATURE_BYTES } from '../../domain/files/guess-type.ts';
import { beginUpload, type Upload, type UploadHead } from '../../domain/files/uploads.ts';
import { formatValue } from '../../lib/format-value.ts';
import { CollabError } from '../../model/errors.ts';
import type { Attachment } from '../../model/attachment.ts';
import { MultipartParser, type MultipartToken } from '../core/multipart.ts';
import { boundaryOf, type PartHead } from '../core/part-headers.ts';
import type { ApiRequest } from './api-request.ts';

/** The most bytes of a body besides its file: headers, and other parts, which are skipped. */
const MAX_OTHER_BYTES = 1024 * 1024;

const FILE_PART = 'file';
/** The most names of other parts in a message. */
const MAX_PART_NAMES = 3;

/**
 * Receives the file of a multipart body as it arrives and returns the attachment made of it; null if the client has
 * gone. Throws `invalid_request`, `invalid_content_type`, `payload_too_large` and as `beginUpload` and `Upload` do.
 */
export function receiveUpload(request: ApiRequest): Promise<Attachment | null> {
  return request.services.uploads.upload(() => receive(request));
}

async function receive(request: ApiRequest): Promise<Attachment | null> {
  const { exchange, services } = request;
  const { contentType, contentLength } = exchange.head;
  const baseUrl = request.baseUrl();
  if (baseUrl === '') throw new CollabError('invalid_request', 'Host must be the address of the server');
  const receiver = new FileReceiver(request, boundaryOf(contentType), contentLength ?? 0);
  const stream = exchange.streamBody();
  try {
    for (;;) {
      const chunk = await stream.read();
      if (chunk === 'aborted') return null;
      if (chunk === 'end') break;
      await services.uploads.chunk(() => receiver.push(chunk));
    }
    const attachment = await receiver.finish();
    services.meter?.uploaded(attachment.type, attachment.sizeBytes);
    return withBaseUrl(attachment, baseUrl);
  } finally {
    await receiver.discard();
  }
}

/** Extracts the one file from a multipart body. */
class FileReceiver {
  readonly #request: ApiRequest;
  readonly #parser: MultipartParser;
  /** The file has at least as many bytes. */
  readonly #minFileBytes: number;
  #upload: Upload | null = null;
  /** The name of a file whose type is not declared, and its first bytes. */
  #untyped: { readonly filename: string; head: Buffer } | null = null;
  /** Whether the current part is the file. */
  #isFile = false;
  #otherBytes = 0;
  /** Of the first parts that are not the file. */
  readonly #partNames: string[] = [];

  constructor(request: ApiRequest, boundary: string, contentLength: number) {
    this.#request = request;
    this.#parser = new MultipartParser(boundary);
    this.#minFileBytes = contentLength - MAX_OTHER_BYTES;
  }

  async push(chunk: Buffer): Promise<void> {
    this.#otherBytes += chunk.length;
    for (const token of this.#parser.push(chunk)) await this.#handle(token);
    if (this.#otherBytes > MAX_OTHER_BYTES)
      throw new CollabError('payload_too_large', `The body without the file must be at most ${MAX_OTHER_BYTES} bytes`);
  }

  async finish(): Promise<Attachment> {
    if (!this.#parser.isComplete) throw new CollabError('invalid_request', 'The body ends before its last boundary');
    await this.#beginUntyped();
    if (this.#upload === null)
      throw new CollabError(
        'invalid_request',
        `No file provided: send one part named file; ${this.#partNames.length === 0 ? 'the body has no part' : `the body has ${this.#partNames.map(formatValue).join(', ')}`}`,
      );
    return this.#upload.finish();
  }

  async discard(): Promise<void> {
    await this.#upload?.discard();
  }

  async #handle(token: MultipartToken): Promise<void> {
    if (token.type === 'part') {
      this.#isFile = token.head.name === FILE_PART;
      if (this.#isFile) await this.#beginPart(token.head);
      else if (this.#partNames.length < MAX_PART_NAMES) this.#partNames.push(token.head.name);
    } else if (token.type === 'data' && this.#isFile) {
      this.#otherBytes -= token.bytes.length;
      await this.#write(token.bytes);
    }
  }

  /** Begins the file, unless its type is not declared and has to be read from its content. */
  async #beginPart(head: PartHead): Promise<void> {
    if (this.#upload !== null || this.#untyped !== null)
      throw new CollabError('invalid_request', 'Send one file at a time: the body has two parts named file');
    const filename = head.filename ?? '';
    const { contentType } = head;
    if (contentType === null) this.#untyped = { filename, head: Buffer.alloc(0) };
    else await this.#begin({ filename, contentType, isDeclared: true });
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#untyped === null) return this.#upload?.write(bytes);
    this.#untyped.head = Buffer.concat([this.#untyped.head, bytes]);
    if (this.#untyped.head.length >= SIGNATURE_BYTES) await this.#beginUntyped();
  }

  /** Begins a file whose type is not declared, if there is one. */
  async #beginUntyped(): Promise<void> {
    if (this.#untyped === null) return;
    const { filename, head } = this.#untyped;
    this.#untyped = null;
    await this.#begin({ filename, contentType: guessedType(filename, head) ?? '', isDeclared: false });
    await this.#upload?.write(head);
  }

  async #begin(head: Omit<UploadHead, 'minBytes'>): Promise<void> {
    const { ctx, actor, config } = this.#request;
    if (!isUser(actor)) throw new Error('only users upload');
    this.#upload = await beginUpload(ctx, actor, config, { ...head, minBytes: this.#minFileBytes });
  }
}

const isUser = (actor: ApiRequest['actor']): actor is UserActor => actor.kind === 'user';
