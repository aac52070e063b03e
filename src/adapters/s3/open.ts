import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { sweepFolder } from '../localfiles/staging-folder.ts';
import { S3Blobs, type StagingOptions } from './blobs.ts';
import { type ClientBounds, DEFAULT_BOUNDS, S3Client } from './client/client.ts';
import { findProvider } from './credentials/find-provider.ts';
import { profileRegion } from './credentials/profile.ts';
import type { Environment } from './credentials/services.ts';
import { CredentialSource } from './credentials/source.ts';
import { locationOf, type S3Options } from './location.ts';
import { hashed } from './multipart.ts';
import { deleteObject, listObjects, putObject } from './objects.ts';
import { openingError } from './opening-error.ts';

const LEFTOVER_MS = 24 * 3_600_000;

/** What `openS3Blobs` needs. */
export interface S3BlobsOptions extends S3Options {
  readonly staging: StagingOptions;
  /** The variables of the process: keys, profile and region are looked for as the SDKs of Amazon do. */
  readonly env: Environment;
  /** That of this machine if absent. */
  readonly clock?: Clock | undefined;
  readonly bounds?: Partial<ClientBounds> | undefined;
}

/**
 * Opens blobs in a bucket of any S3-compatible store, and checks that they can be listed, written and removed. Rejects
 * with an `EngineError` if the options are invalid, there are no keys, or the store refuses or does not answer, within
 * about 30 s.
 */
export async function openS3Blobs(options: S3BlobsOptions): Promise<S3Blobs> {
  const { env, clock = systemClock, bounds } = options;
  // Before anything is looked for: options that are invalid are reported whatever the machine has.
  locationOf(options, undefined);
  let client: S3Client | null = null;
  let location = locationOf(options, env['AWS_REGION'] ?? env['AWS_DEFAULT_REGION']);
  try {
    location = locationOf(options, env['AWS_REGION'] ?? env['AWS_DEFAULT_REGION'] ?? (await profileRegion(env)));
    const credentials = new CredentialSource(await findProvider(env, location.region), clock);
    client = new S3Client(location, { credentials, clock, bounds: { ...DEFAULT_BOUNDS, ...bounds } });
    await probe(client);
    // The sweep of staged files may run on another machine.
    await sweepFolder(options.staging.folder, LEFTOVER_MS, false);
    return new S3Blobs(client, options.staging, clock);
  } catch (error) {
    client?.close();
    throw openingError(error, location);
  }
}

/** Does once what blobs need. */
async function probe(client: S3Client): Promise<void> {
  // A list first: unlike other requests it tells a bucket that does not exist from one that is empty.
  await listObjects(client, 'files/', '/')[Symbol.asyncIterator]().next();
  const key = `probe/${randomBytes(12).toString('hex')}`;
  await putObject(client, key, hashed(Buffer.from('Collab may write here.\n')));
  await deleteObject(client, key);
}
