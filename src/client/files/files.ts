import type { Attachment } from '../../model/attachment.ts';

/** Options of an upload. */
export interface UploadOptions {
  /** Name of the file; that of the `File` if absent. */
  readonly filename?: string | undefined;
  /**
   * Called with the sent and the total number of bytes. Browsers report while they send, other platforms only the end.
   */
  readonly onProgress?: ((sentBytes: number, totalBytes: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The files of a session. */
export interface CollabFiles {
  /**
   * Uploads a file. Pass the `id` of the result as one of `attachmentIds`. Rejects with `file_too_large`,
   * `media_disabled`, `unsupported_media`, `quota_exceeded`, `rate_limited`, `network`, `aborted`.
   */
  upload(file: Blob, options?: UploadOptions): Promise<Attachment>;
  /** Whether the server accepts the MIME type at all; it may be disabled in the environment nevertheless. */
  accepts(mimeType: string): boolean;
  /**
   * An object URL (`blob:`) for an attachment, which `<img>`, `<audio>` and `<video>` can show. The bytes are fetched
   * with the credentials of the session, once for all callers. With `thumb`, of the 200 × 200 JPEG of an image. Valid
   * until `release` or the end of the session. `signal` ends the wait of this caller with `aborted`; a load that has
   * begun goes on and is kept for the next call. A failed load is not kept.
   */
  url(
    attachment: Attachment,
    options?: { readonly thumb?: boolean | undefined; readonly signal?: AbortSignal | undefined },
  ): Promise<string>;
  /** The bytes of an attachment. */
  blob(
    attachment: Attachment,
    options?: { readonly thumb?: boolean | undefined; readonly signal?: AbortSignal | undefined },
  ): Promise<Blob>;
  /** Frees the object URLs of an attachment. */
  release(attachment: Attachment): void;
}
