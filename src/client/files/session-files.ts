import type { Attachment } from '../../model/attachment.ts';
import { untilAborted } from '../abort.ts';
import { fetchResponse } from '../http.ts';
import type { Credentials } from '../session/credentials.ts';
import type { CollabFiles, UploadOptions } from './files.ts';
import { sendUpload } from './upload.ts';

/** The MIME types of docs/api.md, "Files". */
const ACCEPTED = /^(?:image\/(?:jpeg|png|gif|webp)|audio\/(?:webm|ogg|mp4|mpeg|wav)|video\/(?:webm|mp4))$/;
/** Object URLs that are kept; the oldest are revoked. */
const MAX_URLS = 500;

interface FileDeps {
  /** The address of the server without a slash at its end. */
  readonly serverUrl: string;
  readonly credentials: Credentials;
  readonly fetch: typeof fetch;
}

type ReadOptions = { readonly thumb?: boolean | undefined; readonly signal?: AbortSignal | undefined };

/** The files of a session, see `CollabFiles`. */
export class SessionFiles implements CollabFiles {
  readonly #deps: FileDeps;
  readonly #urls = new Map<string, Promise<string>>();
  readonly #uploaded = new Map<string, Attachment>();

  constructor(deps: FileDeps) {
    this.#deps = deps;
  }

  accepts(mimeType: string): boolean {
    return ACCEPTED.test(mimeType.replace(/;.*$/, '').trim().toLowerCase());
  }

  async upload(file: Blob, options: UploadOptions = {}): Promise<Attachment> {
    const filename = options.filename ?? ('name' in file && typeof file.name === 'string' ? file.name : 'file');
    const { serverUrl, credentials, fetch } = this.#deps;
    const attachment = await credentials.authorize((headers) =>
      sendUpload({ url: `${serverUrl}/api/v1/upload`, headers, file, filename, options, fetch }),
    );
    this.#uploaded.set(attachment.id, attachment);
    return attachment;
  }

  /** Those of the attachments that this session uploaded. */
  known(ids: readonly string[]): readonly Attachment[] {
    return ids.flatMap((id) => this.#uploaded.get(id) ?? []);
  }

  async blob(attachment: Attachment, { thumb = false, signal }: ReadOptions = {}): Promise<Blob> {
    const { credentials, fetch } = this.#deps;
    return credentials.authorize(async (headers) => {
      const response = await fetchResponse(
        fetch,
        addressOf(attachment, thumb),
        { headers, signal },
        `Loading ${attachment.filename}`,
      );
      return response.blob();
    });
  }

  url(attachment: Attachment, { thumb, signal }: ReadOptions = {}): Promise<string> {
    return untilAborted(signal, `Loading ${attachment.filename}`, () => this.#shared(attachment, thumb));
  }

  release(attachment: Attachment): void {
    this.#revoke(addressOf(attachment, false));
    this.#revoke(addressOf(attachment, true));
  }

  /** Frees everything. */
  close(): void {
    for (const key of this.#urls.keys()) this.#revoke(key);
    this.#uploaded.clear();
  }

  /** The URL for all callers, which none of them can stop loading. */
  #shared(attachment: Attachment, thumb = false): Promise<string> {
    const key = addressOf(attachment, thumb);
    const kept = this.#urls.get(key);
    if (kept) return kept;
    const url = this.blob(attachment, { thumb }).then((blob) => URL.createObjectURL(blob));
    // A failure is not kept: the next call tries again.
    url.catch(() => this.#urls.get(key) === url && this.#urls.delete(key));
    this.#urls.set(key, url);
    const [oldest] = this.#urls.keys();
    if (this.#urls.size > MAX_URLS && oldest !== undefined) this.#revoke(oldest);
    return url;
  }

  #revoke(key: string): void {
    const url = this.#urls.get(key);
    this.#urls.delete(key);
    url?.then(
      (address) => URL.revokeObjectURL(address),
      () => undefined,
    );
  }
}

const addressOf = ({ url }: Attachment, thumb: boolean): string => (thumb ? `${url}?thumb=1` : url);
