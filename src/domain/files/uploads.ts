import { MEGABYTE } from '../../lib/bytes.ts';
import { CollabError } from '../../model/errors.ts';
import { AdmissionControl } from '../../lib/concurrency/admission-control.ts';
import { timestamp } from '../../lib/clock.ts';
import { newUnguessableId } from '../../lib/ids.ts';
import { acceptedType, acceptedTypes, type Attachment, type StoredFile } from '../../model/attachment.ts';
import type { Environment, MediaKind } from '../../model/environments/environment.ts';
import { actorKey, requireWrite } from '../access/access.ts';
import { type ActorBudget, spendBudget } from '../quotas/budgets.ts';
import type { UserActor } from '../access/actor.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { requirePassing } from '../filtering.ts';
import { putFileJob } from './file-jobs.ts';
import { keepFromOrphans } from './file-sweep.ts';
import { filePath } from './file-urls.ts';
import { safeFilename } from './filenames.ts';
import { StagedFile, type TypeSource } from './staged-file.ts';
import { filesOf, unlinkedOf } from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';
import { consumeQuota, requireQuotaLeft } from '../quotas/usage.ts';

/** The properties of a file that are known before its first byte. */
export interface UploadHead {
  readonly filename: string;
  /** The MIME type, with parameters; '' if it is not known. */
  readonly contentType: string;
  /** Whether the client declared the type. Otherwise it is that of `guessedType`. */
  readonly isDeclared: boolean;
  /** A lower bound of its size in bytes; 0 or less if unknown. */
  readonly minBytes: number;
}

/** The part of the configuration that this needs. */
export interface UploadConfig {
  readonly uploads: { readonly megapixelsPerMinute: number };
}

/** The properties that are read from the content. */
type MediaFacts = Pick<Attachment, 'width' | 'height' | 'durationMs'>;

const MEGAPIXEL = 1_000_000;
/** The maximum number of files of one user that a process is checking, or that wait for it. */
const MAX_CONTENT_CHECKS = 32;
const contentChecks = new AdmissionControl({ requests: MAX_CONTENT_CHECKS, bytes: Infinity, bytesOfAll: Infinity });
const mediaLabels: Readonly<Record<MediaKind, string>> = { image: 'Image', audio: 'Audio', video: 'Video' };

const unsupported = (message: string): CollabError => new CollabError('unsupported_media', message);

/**
 * Begins an upload of a user after checking, in the documented order, what is known before the content. Throws
 * `forbidden`, `unsupported_media`, `media_disabled`, `file_too_large`, `quota_exceeded`, `content_rejected`,
 * `storage_full`, `storage_failed`.
 */
export async function beginUpload(
  ctx: Context,
  actor: UserActor,
  config: UploadConfig,
  { filename, contentType, isDeclared, minBytes }: UploadHead,
): Promise<Upload> {
  requireWrite(actor);
  const accepted = acceptedType(contentType);
  if (accepted === undefined)
    throw unsupported(
      `Unsupported MIME type: ${contentType.slice(0, 100) || 'none'}. Accepted are ${Object.keys(acceptedTypes).join(', ')}`,
    );
  const { type, mimeType } = accepted;
  const { environment } = actor;
  if (!environment.settings.media[type])
    throw new CollabError('media_disabled', `${mediaLabels[type]} uploads are disabled for this environment`);
  if (minBytes > maxBytes(environment)) throw tooLarge(environment);
  await requireQuotaLeft(ctx, actor, 'uploadBytes', minBytes);
  const name = safeFilename(filename, mimeType);
  await requirePassing(ctx, actor, 'upload.create', {
    userId: actor.userId,
    filename: name,
    mimeType,
    sizeBytes: minBytes > 0 ? minBytes : null,
  });
  // Its id is all that a confined key needs to attach an upload (decision 24).
  const id = newUnguessableId('file_', ctx.clock.now());
  const staged = new StagedFile(await requireFileStorage(ctx).blobs.stage(environment.id, id));
  return new Upload(ctx, actor, pixelBudget(config), staged, {
    id,
    type,
    mimeType,
    filename: name,
    source: isDeclared ? 'as declared' : 'as its name or first bytes suggest',
  });
}

/** The properties of a file that are known before its content. */
interface Expected extends Pick<Attachment, 'id' | 'type' | 'mimeType' | 'filename'> {
  /** Where the MIME type comes from, for the refusal of another content. */
  readonly source: TypeSource;
}

/** A file that is being received. End it with `finish` or `discard`. */
export class Upload {
  readonly #ctx: Context;
  readonly #actor: UserActor;
  readonly #pixels: ActorBudget;
  readonly #staged: StagedFile;
  readonly #expected: Expected;

  constructor(ctx: Context, actor: UserActor, pixels: ActorBudget, staged: StagedFile, expected: Expected) {
    this.#ctx = ctx;
    this.#actor = actor;
    this.#pixels = pixels;
    this.#staged = staged;
    this.#expected = expected;
  }

  /**
   * Writes the next bytes. Await it before the next call. Throws `file_too_large`, `storage_full`, `storage_failed`,
   * and `quota_exceeded` as soon as the file would exceed a quota together with what is stored now.
   */
  async write(chunk: Buffer): Promise<void> {
    const size = this.#staged.size + chunk.byteLength;
    if (size > maxBytes(this.#actor.environment)) throw tooLarge(this.#actor.environment);
    await requireQuotaLeft(this.#ctx, this.#actor, 'uploadBytes', size);
    await this.#staged.write(chunk);
  }

  /**
   * Checks the content, stores the file and returns it as an attachment, with its URLs as paths. Throws
   * `invalid_request` for an empty file, `unsupported_media` if the content contradicts the type, `rate_limited` for
   * more files at once or more pixels per minute than a user may upload, `quota_exceeded`, `storage_full`,
   * `storage_failed`.
   */
  async finish(): Promise<Attachment> {
    if (this.#staged.size === 0) throw new CollabError('invalid_request', 'The file is empty');
    const [facts] = await Promise.all([this.#checkContent(), this.#staged.flush()]);
    const { environment, userId } = this.#actor;
    const { id, type, filename, mimeType } = this.#expected;
    const url = filePath(environment.id, id);
    const thumbnail = type === 'image' ? { thumbnailUrl: `${url}?thumb=1` } : {};
    const attachment: Attachment = {
      id,
      type,
      filename,
      mimeType,
      sizeBytes: this.#staged.size,
      url,
      ...thumbnail,
      ...facts,
    };
    await this.#store({
      attachment,
      uploadedBy: userId,
      commentId: null,
      sha256: this.#staged.sha256(),
      createdAt: timestamp(this.#ctx.clock.now()),
    });
    return attachment;
  }

  /** Discards what was received. Safe to call twice, and after `finish`. */
  discard(): Promise<void> {
    return this.#staged.discard();
  }

  async #checkContent(): Promise<MediaFacts> {
    const release = contentChecks.admit(actorKey(this.#actor), 0);
    if (release === null)
      throw new CollabError(
        'rate_limited',
        `At most ${MAX_CONTENT_CHECKS} files of one user are checked at once. Try again in 1s`,
        1,
      );
    try {
      return await this.#readFacts(actorKey(this.#actor));
    } finally {
      release();
    }
  }

  async #readFacts(userKey: string): Promise<MediaFacts> {
    const { media } = requireFileStorage(this.#ctx);
    const { type, mimeType, source } = this.#expected;
    const contradiction = await this.#staged.contradictionOf(mimeType, source, media, userKey);
    if (contradiction !== null) throw unsupported(contradiction);
    const file = this.#staged.mediaFile(userKey);
    if (type !== 'image') return { durationMs: await media.duration(file, mimeType) };
    const image = await media.image(file, (pixels) =>
      spendBudget(this.#ctx, this.#actor, this.#pixels, pixels / MEGAPIXEL),
    );
    if (image === null)
      throw unsupported('The image cannot be decoded: it is damaged, cut off or has more than 50 million pixels');
    if (image.mimeType !== mimeType) throw unsupported(`The content is ${image.mimeType}, not ${mimeType} ${source}`);
    return { width: image.width, height: image.height };
  }

  async #store(file: StoredFile): Promise<void> {
    const { id, type } = file.attachment;
    const environmentId = this.#actor.environment.id;
    await keepFromOrphans(this.#ctx, environmentId, id);
    try {
      await this.#staged.commit();
      await this.#ctx.store.transact((tx) => {
        putRecord(tx, filesOf(environmentId), id, file);
        tx.put(unlinkedOf(environmentId), id, '1');
        consumeQuota(tx, this.#actor, file.uploadedBy, 'uploadBytes', file.attachment.sizeBytes);
        if (type === 'image') putFileJob(tx, 'thumb', environmentId, id, file.uploadedBy);
        return Promise.resolve();
      });
    } catch (error) {
      // A commit that fails may have made the blob visible. If the disk does not even remove it, `collab gc` does
      // later.
      await requireFileStorage(this.#ctx)
        .blobs.remove(environmentId, id)
        .catch(() => undefined);
      throw error;
    }
  }
}

function pixelBudget({ uploads: { megapixelsPerMinute } }: UploadConfig): ActorBudget {
  return {
    name: 'pixels',
    perMinute: megapixelsPerMinute,
    exceededMessage: `PNG, GIF, WebP and progressive JPEG images of more than ${megapixelsPerMinute} megapixels in a minute`,
  };
}

const maxBytes = ({ settings }: Environment): number => settings.maxFileSizeMb * MEGABYTE;

function tooLarge({ settings }: Environment): CollabError {
  return new CollabError('file_too_large', `File too large (max ${settings.maxFileSizeMb}MB)`);
}
