import { createHash } from 'node:crypto';
import type { HashedBody, S3Client } from './client/client.ts';
import { ConnectionFailure, S3Failure } from './client/failures.ts';
import { elements, escapeXml, textOf, unescapeXml } from './client/xml.ts';
import { requireTag, requireWhole, sizeOf } from './objects.ts';

/** An upload in parts that has begun. */
export interface UploadId {
  readonly key: string;
  readonly id: string;
}

/** A part that the store has. */
export interface UploadedPart {
  /** From 1. */
  readonly number: number;
  readonly tag: string;
}

/** Begins an upload in parts; nothing of it is visible until `completeUpload`. */
export async function beginUpload(client: S3Client, key: string): Promise<UploadId> {
  const root = 'InitiateMultipartUploadResult';
  const { body } = await client.send({ method: 'POST', key, query: { uploads: '' }, check: requireWhole(root) });
  const id = unescapeXml(textOf(body.toString(), 'UploadId') ?? '');
  if (id === '') throw new ConnectionFailure('the store has begun an upload without an id');
  return { key, id };
}

/** Uploads a part. All but the last one must have the same size, at least 5 MiB. */
export async function uploadPart(
  client: S3Client,
  upload: UploadId,
  number: number,
  body: HashedBody,
  signal: AbortSignal,
): Promise<UploadedPart> {
  const { headers } = await client.send({
    method: 'PUT',
    key: upload.key,
    query: { partNumber: String(number), uploadId: upload.id },
    body,
    signal,
    check: requireTag,
  });
  return { number, tag: headers.etag ?? '' };
}

/** Makes the parts the object, at once. `size` is that of all of them. */
export async function completeUpload(
  client: S3Client,
  upload: UploadId,
  parts: readonly UploadedPart[],
  size: number,
): Promise<void> {
  const list = parts.map(
    ({ number, tag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`,
  );
  const xml = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${list.join('')}</CompleteMultipartUpload>`;
  try {
    await client.send({
      method: 'POST',
      key: upload.key,
      query: { uploadId: upload.id },
      headers: { 'content-type': 'application/xml' },
      body: hashed(Buffer.from(xml)),
      check: requireWhole('CompleteMultipartUploadResult'),
    });
  } catch (error) {
    // The answer to an attempt that succeeded was lost, and the upload is over.
    const isOver = error instanceof S3Failure && error.status === 404;
    if (!isOver || (await sizeOf(client, upload.key)) !== size) throw error;
  }
}

/** Ends an upload and removes its parts; no effect if it is over. */
export async function abortUpload(client: S3Client, upload: UploadId): Promise<void> {
  try {
    await client.send({ method: 'DELETE', key: upload.key, query: { uploadId: upload.id } });
  } catch (error) {
    if (!(error instanceof S3Failure && error.isMissing)) throw error;
  }
}

/**
 * Lists the uploads below `prefix` that began at least `ageMs` ago, by the clock of the store. A store that cannot list
 * them (501 or 405) has none: it removes them by a rule of its own, or by hand.
 */
export async function listUploads(client: S3Client, prefix: string, ageMs: number): Promise<UploadId[]> {
  const found: UploadId[] = [];
  let markers: Readonly<Record<string, string>> | null = {};
  while (markers !== null) {
    const page: UploadPage = await uploadPage(client, prefix, markers);
    for (const { startedAt, ...upload } of page.uploads) if (page.now - startedAt >= ageMs) found.push(upload);
    markers = page.next;
  }
  return found;
}

interface UploadPage {
  /** Times are those of the store, in milliseconds; NaN if it does not say. */
  readonly uploads: readonly (UploadId & { readonly startedAt: number })[];
  readonly now: number;
  /** Where the next page begins; null if there is none. */
  readonly next: Readonly<Record<string, string>> | null;
}

async function uploadPage(
  client: S3Client,
  prefix: string,
  markers: Readonly<Record<string, string>>,
): Promise<UploadPage> {
  const own = client.location.prefix;
  const query = { uploads: '', prefix: own + prefix, ...markers };
  try {
    const check = requireWhole('ListMultipartUploadsResult');
    const { body, headers } = await client.send({ method: 'GET', query, check });
    const xml = body.toString();
    const text = (name: string, within = xml): string => unescapeXml(textOf(within, name) ?? '');
    const uploads = elements(xml, 'Upload')
      .map((upload) => ({
        key: text('Key', upload),
        id: text('UploadId', upload),
        startedAt: Date.parse(text('Initiated', upload)),
      }))
      // Some stores list all uploads of the bucket.
      .filter(({ key }) => key.startsWith(own + prefix))
      .map((upload) => ({ ...upload, key: upload.key.slice(own.length) }));
    const key = text('NextKeyMarker');
    const isMore = text('IsTruncated') === 'true' && key !== '';
    return {
      uploads,
      // The header has whole seconds.
      now: Date.parse(headers.date ?? '') + 999,
      next: isMore ? { 'key-marker': key, 'upload-id-marker': text('NextUploadIdMarker') } : null,
    };
  } catch (error) {
    if (!(error instanceof S3Failure) || (error.status !== 501 && error.status !== 405)) throw error;
    return { uploads: [], now: 0, next: null };
  }
}

/** Bytes in memory as a body. */
export function hashed(bytes: Buffer): HashedBody {
  return {
    length: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    async *chunks() {
      yield bytes;
    },
  };
}
