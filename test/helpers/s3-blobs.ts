import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { S3Blobs } from '../../src/adapters/s3/blobs.ts';
import { DEFAULT_BOUNDS, S3Client } from '../../src/adapters/s3/client/client.ts';
import { findProvider } from '../../src/adapters/s3/credentials/find-provider.ts';
import { CredentialSource } from '../../src/adapters/s3/credentials/source.ts';
import { locationOf } from '../../src/adapters/s3/location.ts';
import { openS3Blobs, type S3BlobsOptions } from '../../src/adapters/s3/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Blobs } from '../../src/ports/blobs.ts';
import { S3Server } from '../doubles/s3/server.ts';
import type { AcceptedKeys } from '../doubles/s3/signature-check.ts';
import { until } from './cluster.ts';
import { tempFolder } from './temp-folder.ts';

/** Blobs in a server of their own. */
export interface S3Trial {
  readonly server: S3Server;
  readonly blobs: S3Blobs;
  readonly options: S3BlobsOptions;
  /** The files that are staged. */
  readonly staged: () => string[];
}

/** Of the parts of a trial. */
export const PART_BYTES = 512 * 1024;

/** Bounds for tests in which the store hangs. A machine that is busy may reach them too, so allow for more attempts. */
export const IMPATIENT = { idleMs: 250, backoffMs: 1 };

/** Opens blobs in a new server, with small parts. Pauses between attempts are short. */
export async function s3Trial(t: Test, changes: Partial<S3BlobsOptions> = {}, keys?: AcceptedKeys): Promise<S3Trial> {
  const server = await S3Server.start(t);
  if (keys !== undefined) server.keys.current = keys;
  const folder = join(tempFolder(t), 'staging');
  const bounds = { backoffMs: 1, idleMs: 60_000, ...changes.bounds };
  server.bucket.minPart = PART_BYTES;
  const options = {
    ...server.options,
    staging: { folder, minFreeBytes: 0, partBytes: PART_BYTES },
    ...changes,
    bounds,
  };
  const blobs = await openS3Blobs(options);
  t.teardown(() => blobs.close());
  server.seen.length = 0;
  const staged = (): string[] => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  };
  return { server, blobs, options, staged };
}

/** A client of its own, as blobs have it. */
export async function s3Client(t: Test, { bounds, ...options }: S3BlobsOptions): Promise<S3Client> {
  const credentials = new CredentialSource(await findProvider(options.env, options.region), systemClock);
  const deps = { credentials, clock: systemClock, bounds: { ...DEFAULT_BOUNDS, ...bounds } };
  const client = new S3Client(locationOf(options, undefined), deps);
  t.teardown(() => client.close());
  return client;
}

/** Asserts that no socket is left once the blobs are closed, and no file and no upload is at all. */
export async function nothingLeft(t: Test, { server, blobs, staged }: S3Trial): Promise<void> {
  t.same(staged(), [], 'no staged file');
  t.equal(server.bucket.uploads.size, 0, 'no upload in parts');
  blobs.close();
  await until(() => server.sockets.size === 0);
}

/** Writes a blob as a whole. */
export async function putBlob(blobs: Blobs, name: string, bytes: Buffer): Promise<void> {
  const staged = await blobs.stage('env', name);
  try {
    for (let at = 0; at < bytes.length; at += 1_000_000) await staged.write(bytes.subarray(at, at + 1_000_000));
    await staged.flush();
    await staged.commit();
  } finally {
    await staged.discard();
  }
}

/** Reads a blob as a whole, in pieces of `length`. */
export async function readBlob(blobs: Blobs, name: string, length = 256 * 1024): Promise<Buffer> {
  const reader = await blobs.open('env', name);
  const pieces: Buffer[] = [];
  try {
    for (let offset = 0; ; offset += length) {
      const piece = await reader.read(offset, length);
      pieces.push(piece);
      if (piece.length < length) return Buffer.concat(pieces);
    }
  } finally {
    await reader.close();
  }
}
