import type { S3Client, HashedBody } from './client/client.ts';
import type { HttpAnswer } from './client/http-answer.ts';
import { ConnectionFailure, S3Failure } from './client/failures.ts';
import { elements, textOf, unescapeXml } from './client/xml.ts';

/** Bytes of an object. */
export interface ObjectRange {
  readonly bytes: Buffer;
  /** Of the whole object. */
  readonly size: number;
  /** Distinguishes contents under one key. */
  readonly tag: string;
}

/** What a listing finds. */
export interface Listing {
  /** Without the prefix of the location. */
  readonly keys: readonly string[];
  /** What is common to keys up to the next slash; likewise. */
  readonly folders: readonly string[];
}

/** The size of an object; undefined if there is none. */
export async function sizeOf(client: S3Client, key: string): Promise<number | undefined> {
  try {
    const { headers } = await client.send({ method: 'HEAD', key, check: requireTag });
    return Number(headers['content-length'] ?? 0);
  } catch (error) {
    if (error instanceof S3Failure && error.isMissing) return undefined;
    throw error;
  }
}

/**
 * Reads `length` bytes of an object, at least 1, fewer only at its end. Undefined if there is no such object.
 */
export async function readRange(
  client: S3Client,
  key: string,
  offset: number,
  length: number,
): Promise<ObjectRange | undefined> {
  try {
    const answer = await client.send({
      method: 'GET',
      key,
      headers: { range: `bytes=${offset}-${offset + length - 1}` },
      maxBytes: length,
      check: (answer) => void rangeOf(answer, offset, length),
    });
    return rangeOf(answer, offset, length);
  } catch (error) {
    if (!(error instanceof S3Failure)) throw error;
    if (error.isMissing) return undefined;
    // There is no byte at this offset.
    if (error.status !== 416) throw error;
    const size = await sizeOf(client, key);
    return size === undefined ? undefined : { bytes: Buffer.alloc(0), size, tag: '' };
  }
}

/** Throws if the answer has other bytes than were asked for. */
function rangeOf(answer: HttpAnswer, offset: number, length: number): ObjectRange {
  requireTag(answer);
  const { status, headers, body } = answer;
  const tag = headers.etag ?? '';
  // Some stores answer so when the range covers the whole object.
  if (status === 200 && offset === 0) {
    if (headers['content-length'] !== undefined && Number(headers['content-length']) !== body.length)
      throw new ConnectionFailure('the object was cut off');
    return { bytes: body, size: body.length, tag };
  }
  const [, start, end, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  const size = Number(total);
  const expected = Math.min(length, size - offset);
  if (Number(start) !== offset || Number(end) - offset + 1 !== expected || body.length !== expected)
    throw new ConnectionFailure('the answer has another range than the one asked for');
  return { bytes: body, size, tag };
}

/** Writes an object as a whole. */
export async function putObject(client: S3Client, key: string, body: HashedBody): Promise<void> {
  await client.send({ method: 'PUT', key, body, check: requireTag });
}

/** Removes an object; no effect if there is none. */
export async function deleteObject(client: S3Client, key: string): Promise<void> {
  try {
    await client.send({ method: 'DELETE', key });
  } catch (error) {
    if (!(error instanceof S3Failure && error.isMissing)) throw error;
  }
}

/** Lists the keys that begin with `prefix`, page by page; with `delimiter` only up to the next slash. */
export async function* listObjects(client: S3Client, prefix: string, delimiter = ''): AsyncIterable<Listing> {
  const own = client.location.prefix;
  const strip = (key: string): string => unescapeXml(key).slice(own.length);
  let token: string | undefined;
  do {
    const query: Record<string, string> = { 'list-type': '2', 'max-keys': '1000', prefix: own + prefix };
    if (delimiter !== '') query['delimiter'] = delimiter;
    if (token !== undefined) query['continuation-token'] = token;
    const { body } = await client.send({ method: 'GET', query, check: requireWhole('ListBucketResult') });
    const xml = body.toString();
    yield {
      keys: elements(xml, 'Contents').map((entry) => strip(textOf(entry, 'Key') ?? '')),
      folders: elements(xml, 'CommonPrefixes').map((entry) => strip(textOf(entry, 'Prefix') ?? '')),
    };
    const next = textOf(xml, 'NextContinuationToken');
    token = textOf(xml, 'IsTruncated') === 'true' && next !== undefined ? unescapeXml(next) : undefined;
  } while (token !== undefined);
}

/** Checks that an answer is of a store: it has the tag of an object, which the page of a proxy has not. */
export function requireTag({ headers }: HttpAnswer): void {
  if (headers.etag === undefined) throw new ConnectionFailure('the answer is not of an object store: it has no ETag');
}

/** Checks that an answer is XML with this root and has its end. An `Error` in an answer of 200 is a failure. */
export function requireWhole(root: string): (answer: HttpAnswer) => void {
  return ({ status, headers, body }) => {
    const xml = body.toString();
    if (/<Error[\s>]/.test(xml) && textOf(xml, 'Code') !== undefined)
      throw new S3Failure({ status: status === 200 ? 500 : status, headers, body }, root);
    if (!new RegExp(`<${root}(?:\\s[^>]*)?(?:/>|>[\\s\\S]*</${root}>)`).test(xml))
      throw new ConnectionFailure(`the answer is no whole ${root}`);
  };
}
