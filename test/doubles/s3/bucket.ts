import { createHash, randomBytes } from 'node:crypto';
import type { Refusal } from './signature-check.ts';

interface Upload {
  readonly key: string;
  readonly startedAt: number;
  readonly parts: Map<number, Buffer>;
}

/** A request to a bucket, as it was understood. */
export interface BucketRequest {
  readonly method: string;
  /** Empty for the bucket. */
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** What a bucket answers. */
export interface BucketAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const tags = new WeakMap<Buffer, string>();
function tagOf(body: Buffer): string {
  const tag = tags.get(body) ?? `"${createHash('md5').update(body).digest('hex')}"`;
  tags.set(body, tag);
  return tag;
}

const xml = (text: string): BucketAnswer => ({
  status: 200,
  headers: { 'content-type': 'application/xml' },
  body: `<?xml version="1.0" encoding="UTF-8"?>\n${text}`,
});

/** The objects and uploads of a bucket, and what S3 does with them. */
export class Bucket {
  readonly objects = new Map<string, Buffer>();
  readonly uploads = new Map<string, Upload>();
  /** The least size of a part that is not the last one. */
  minPart = 5 * 1024 * 1024;
  /** How many keys a page of a list has. */
  pageSize = 3;
  /** What lists show, while they lag; null while they are up to date. */
  #listed: readonly string[] | null = null;

  /** Lists show what there is now, until `catchUp`. */
  lag(): void {
    this.#listed = [...this.objects.keys()];
  }

  catchUp(): void {
    this.#listed = null;
  }

  handle(request: BucketRequest): BucketAnswer | Refusal {
    const { method, key, query } = request;
    if (key === '') return query.has('uploads') ? this.#listUploads(query) : this.#list(query);
    if (method === 'POST' && query.has('uploads')) return this.#begin(key);
    if (method === 'POST') return this.#complete(request);
    if (method === 'PUT') return query.has('partNumber') ? this.#putPart(request) : this.#put(request);
    if (method === 'DELETE') return query.has('uploadId') ? this.#abort(query) : this.#delete(key);
    return this.#get(request);
  }

  #put({ key, body }: BucketRequest): BucketAnswer {
    this.objects.set(key, body);
    return { status: 200, headers: { etag: tagOf(body) } };
  }

  #delete(key: string): BucketAnswer {
    this.objects.delete(key);
    return { status: 204 };
  }

  #get({ method, key, headers }: BucketRequest): BucketAnswer | Refusal {
    const bytes = this.objects.get(key);
    if (bytes === undefined) return { status: 404, code: 'NoSuchKey' };
    const etag = tagOf(bytes);
    const range = /^bytes=(\d+)-(\d+)$/.exec(String(headers['range'] ?? ''));
    if (method === 'HEAD' || range === null) return { status: 200, headers: { etag }, body: bytes };
    const start = Number(range[1]);
    const end = Math.min(Number(range[2]), bytes.length - 1);
    if (start >= bytes.length) return { status: 416, code: 'InvalidRange' };
    return {
      status: 206,
      headers: { etag, 'content-range': `bytes ${start}-${end}/${bytes.length}` },
      body: bytes.subarray(start, end + 1),
    };
  }

  #list(query: ReadonlyMap<string, string>): BucketAnswer | Refusal {
    if (query.get('list-type') !== '2') return { status: 501, code: 'NotImplemented' };
    const prefix = query.get('prefix') ?? '';
    const delimiter = query.get('delimiter') ?? '';
    const after = query.get('continuation-token') ?? '';
    const entries = new Set<string>();
    for (const key of [...(this.#listed ?? this.objects.keys())].filter((name) => name.startsWith(prefix)).sort()) {
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      entries.add(end === -1 ? key : key.slice(0, end + 1));
    }
    const rest = [...entries].filter((entry) => entry > after);
    const page = rest.slice(0, this.pageSize);
    const shown = page.map((entry) =>
      delimiter !== '' && entry.endsWith(delimiter)
        ? `<CommonPrefixes><Prefix>${escape(entry)}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${escape(entry)}</Key><Size>1</Size></Contents>`,
    );
    const isMore = rest.length > page.length;
    const next = isMore ? `<NextContinuationToken>${escape(page.at(-1) ?? '')}</NextContinuationToken>` : '';
    return xml(
      `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>${escape(prefix)}</Prefix><IsTruncated>${isMore}</IsTruncated>${next}${shown.join('')}</ListBucketResult>`,
    );
  }

  #begin(key: string): BucketAnswer {
    const id = `${randomBytes(9).toString('base64')}&<`;
    this.uploads.set(id, { key, startedAt: Date.now(), parts: new Map() });
    return xml(
      `<InitiateMultipartUploadResult><Key>${escape(key)}</Key><UploadId>${escape(id)}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  #putPart({ key, query, body }: BucketRequest): BucketAnswer | Refusal {
    const upload = this.uploads.get(query.get('uploadId') ?? '');
    if (upload?.key !== key) return { status: 404, code: 'NoSuchUpload' };
    upload.parts.set(Number(query.get('partNumber')), body);
    return { status: 200, headers: { etag: tagOf(body) } };
  }

  #complete({ key, query, body }: BucketRequest): BucketAnswer | Refusal {
    const id = query.get('uploadId') ?? '';
    const upload = this.uploads.get(id);
    if (upload?.key !== key) return { status: 404, code: 'NoSuchUpload' };
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]+)<\/ETag>/g)];
    const parts: Buffer[] = [];
    for (const [, number = '', tag = ''] of named) {
      const part = upload.parts.get(Number(number));
      if (part === undefined || tagOf(part) !== tag) return { status: 400, code: 'InvalidPart' };
      parts.push(part);
    }
    if (parts.length === 0) return { status: 400, code: 'MalformedXML' };
    if (parts.slice(0, -1).some((part) => part.length < this.minPart)) return { status: 400, code: 'EntityTooSmall' };
    this.uploads.delete(id);
    this.objects.set(key, Buffer.concat(parts));
    return xml(`<CompleteMultipartUploadResult><Key>${escape(key)}</Key></CompleteMultipartUploadResult>`);
  }

  #abort(query: ReadonlyMap<string, string>): BucketAnswer | Refusal {
    return this.uploads.delete(query.get('uploadId') ?? '') ? { status: 204 } : { status: 404, code: 'NoSuchUpload' };
  }

  #listUploads(query: ReadonlyMap<string, string>): BucketAnswer {
    const after = query.get('upload-id-marker') ?? '';
    const all = [...this.uploads].filter(([id, { key }]) => key.startsWith(query.get('prefix') ?? '') && id > after);
    const page = all.sort(([one], [other]) => (one < other ? -1 : 1)).slice(0, this.pageSize);
    const last = page.at(-1);
    const shown = page.map(
      ([id, { key, startedAt }]) =>
        `<Upload><Key>${escape(key)}</Key><UploadId>${escape(id)}</UploadId><Initiator><ID>x</ID></Initiator><Initiated>${new Date(startedAt).toISOString()}</Initiated></Upload>`,
    );
    const isMore = all.length > page.length && last !== undefined;
    const next = isMore
      ? `<NextKeyMarker>${escape(last[1].key)}</NextKeyMarker><NextUploadIdMarker>${escape(last[0])}</NextUploadIdMarker>`
      : '';
    return xml(
      `<ListMultipartUploadsResult><IsTruncated>${isMore}</IsTruncated>${next}${shown.join('')}</ListMultipartUploadsResult>`,
    );
  }
}
