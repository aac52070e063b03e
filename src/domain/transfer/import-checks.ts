import { hash } from 'node:crypto';
import { CollabError, invalidField } from '../../model/errors.ts';
import { acceptedTypes, type Attachment, type StoredFile } from '../../model/attachment.ts';
import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { KeyCreateSchema, MAX_KEY_RATE_LIMIT, type SigningKey, type StoredKey } from '../../model/environments/key.ts';
import { defaultLimits, type Limits } from '../../model/environments/limits.ts';
import type { ModerationItem, Report } from '../../model/moderation.ts';
import type { Metadata } from '../../model/metadata.ts';
import type { Notification } from '../../model/notification.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import { type User, UserPutSchema } from '../../model/user.ts';
import {
  checkBody,
  checkId,
  checkRoomId,
  checkMentions,
  checkMetadata,
  checkName,
  checkPosition,
  isEmailAddress,
  isWebAddress,
} from '../input/bounds.ts';
import { validateEnvironmentPatch } from '../environments/environments.ts';
import type { ExportLine, LineOf } from './export-format.ts';
import { isSafeFilename } from '../files/filenames.ts';
import { digestOf } from '../rooms/shared-state.ts';
import { checkReactions } from '../comments/reactions.ts';
import { type SigningKeyCreate, validateSigningKey } from '../access/signing-keys.ts';
import { InputSchema, isRecord, validate } from '../input/validate.ts';

const keyCreate = new InputSchema(KeyCreateSchema);
const userPut = new InputSchema(UserPutSchema);

/** The paths of the times in a line. In metadata, a key that ends in At is not a time. */
const TIME_PATH =
  /^(?:data\.(?:(?:comment|thread)\.)?(?:reactions\[\d+\]\.|tokenScope\.)?)?(?:created|issued|updated|resolved|edited|lastActivity|expires|revoked|firstSeen|lastSeen|read)At$/;
const MAX_URL_LENGTH = 2_048;
const MAX_STATE_BYTES = 100 * 1024 * 1024;

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

/**
 * Checks a line of an export, which has passed its schema, as the API checks requests. If an environment has a limit of
 * its own, the larger of that and the default applies, so that content from before a limit was lowered can be imported.
 * Throws `invalid_request`, which names the field and its bound.
 *
 * @param environment the environment of the line; for a line of the type `environment`, the one in the line
 */
export function checkLine(line: ExportLine, environment: Environment): void {
  checkText(line, '');
  try {
    checkFields(line, environment);
  } catch (thrown) {
    throw thrown instanceof CollabError && thrown.code === 'invalid_request' ? inData(thrown) : thrown;
  }
}

/** Adds `data.` to the field in a message: to the validators of the API, the fields of `data` are those of the body. */
function inData({ message }: CollabError): CollabError {
  return invalid(/^(?:roomId|bytes) |^[A-Z]/.test(message) ? message : `data.${message}`);
}

function checkFields(line: ExportLine, environment: Environment): void {
  const limits = limitsFor(environment);
  switch (line.type) {
    case 'environment':
      return checkEnvironment(environment);
    case 'signing-key':
      return checkSigningKey(dataOf<SigningKey>(line));
    case 'key':
      return checkKey(dataOf<StoredKey>(line), limits);
    case 'user':
      return checkUser(dataOf<User>(line), limits);
    case 'file':
      return checkFile(dataOf<StoredFile>(line), environment.id, limits);
    case 'state':
      return checkState(line, limits);
    case 'moderation-item':
      return checkItem(dataOf<ModerationItem>(line), environment.id, limits);
    case 'report':
      return checkReport(dataOf<Report>(line), limits);
    case 'room':
      return checkRoom(line.data, limits);
    case 'thread':
      return checkThread(dataOf<ThreadRecord>(line), limits);
    case 'comment':
      return checkComment(dataOf<Comment>(line), environment.id, limits);
    case 'notification-settings':
    case 'subscription':
      return checkId('userId', line.userId, limits);
    case 'notification':
      return checkNotification(dataOf<Notification>(line), limits);
    case 'chunk':
    case 'end':
    case 'export':
      return;
  }
}

const dataOf = <T>(line: unknown): T => (line as { data: T }).data;

function limitsFor({ settings }: Environment): Limits {
  const own = Object.entries(settings.limits).filter(
    ([name, value]) => Object.hasOwn(defaultLimits, name) && value > defaultLimits[name as keyof Limits],
  );
  return { ...defaultLimits, ...Object.fromEntries(own) };
}

function checkEnvironment({ name, disabled, settings }: Environment): void {
  validateEnvironmentPatch({ name, disabled, settings });
}

function checkSigningKey(key: SigningKey): void {
  if (key.kind === 'secret' ? key.alg !== 'HS256' : !['RS256', 'PS256', 'ES256', 'EdDSA'].includes(key.alg))
    throw invalidField(
      'alg',
      'must be HS256 for a secret, and RS256, PS256, ES256 or EdDSA for any other key',
      key.alg,
    );
  const [field, value] =
    key.kind === 'secret'
      ? (['secret', key.secret] as const)
      : key.kind === 'public'
        ? (['key', key.key] as const)
        : (['url', (key as { url?: unknown }).url] as const);
  if (!['secret', 'public', 'jwks'].includes(key.kind))
    throw invalidField('kind', 'must be one of secret, public, jwks', key.kind);
  if (typeof value !== 'string') throw invalid(`${field} must be a string`);
  validateSigningKey(key satisfies SigningKeyCreate, key.kid, key.createdAt);
}

function checkKey(key: StoredKey, limits: Limits): void {
  const { kind, name, preview } = key;
  const own =
    kind === 'secret'
      ? { scope: key.scope, rooms: key.rooms, rateLimit: key.rateLimit === 0 ? 'unlimited' : key.rateLimit }
      : {};
  validate(keyCreate, { kind, name, ...own });
  if (kind === 'secret' && (key.scope === undefined || key.rooms === undefined || key.rateLimit === undefined))
    throw invalid(`scope, rooms and rateLimit (0 to ${MAX_KEY_RATE_LIMIT}) are required for a secret key`);
  checkId('preview', preview, limits);
  if (!/^[A-Za-z0-9_-]{43}$/.test(key.hash)) throw invalid('hash must be a SHA-256 as base64url, 43 characters');
  const { value } = key as { value?: unknown };
  if (kind === 'secret' && value !== undefined)
    throw invalid('value must be absent: a secret key is stored only as its hash');
  if (
    kind === 'publishable' &&
    (typeof value !== 'string' || !/^pk_[\w-]{1,125}$/.test(value) || hash('sha256', value, 'base64url') !== key.hash)
  )
    throw invalid('value must begin with pk_ and have the SHA-256 in hash');
}

function checkUser({ userId, name, avatarUrl, email, kind, metadata }: User, limits: Limits): void {
  checkId('userId', userId, limits);
  validate(
    userPut,
    Object.fromEntries(
      Object.entries({ name, avatarUrl, email, kind, metadata }).filter(([, value]) => value !== null),
    ),
  );
  if (name !== null) checkName('name', name);
  if (avatarUrl !== null && !isWebAddress(avatarUrl))
    throw invalidField('avatarUrl', 'must be an http or https address', avatarUrl);
  if (email !== null && !isEmailAddress(email)) throw invalidField('email', 'must be an email address', email);
  checkStoredMetadata(metadata, limits);
}

function checkFile(
  { attachment, uploadedBy, held, noThumbnail }: StoredFile,
  environmentId: string,
  limits: Limits,
): void {
  checkId('uploadedBy', uploadedBy, limits);
  checkAttachment('attachment', attachment, environmentId);
  if (held !== undefined && (held as unknown) !== true) throw invalidField('held', 'must be true or absent', held);
  if (noThumbnail !== undefined && (noThumbnail as unknown) !== true)
    throw invalidField('noThumbnail', 'must be true or absent', noThumbnail);
}

/**
 * Throws `invalid_request` for an attachment that no upload gives, in particular for values that are later sent as a
 * header or loaded by a page.
 */
function checkAttachment(field: string, attachment: Attachment, environmentId: string): void {
  const { id, type, filename, mimeType, sizeBytes, url, thumbnailUrl } = attachment;
  const accepted = Object.hasOwn(acceptedTypes, mimeType) ? acceptedTypes[mimeType] : undefined;
  if (accepted === undefined)
    throw invalidField(`${field}.mimeType`, `must be one of ${Object.keys(acceptedTypes).join(', ')}`, mimeType);
  if (type !== accepted)
    throw invalidField(`${field}.type`, `must be ${accepted}, as the mimeType is ${mimeType}`, type);
  if (!isSafeFilename(filename))
    throw invalidField(
      `${field}.filename`,
      'must be 1 to 255 bytes of UTF-8 without slashes, control and direction characters',
      filename,
    );
  if (sizeBytes < 1) throw invalidField(`${field}.sizeBytes`, 'must be at least 1', sizeBytes);
  const path = `/files/${environmentId}/${id}`;
  if (!isAddressWith(url, path))
    throw invalidField(
      `${field}.url`,
      `must be ${path}, alone or after the http or https address of a server, at most ${MAX_URL_LENGTH} characters`,
      url,
    );
  if (thumbnailUrl !== undefined && (type !== 'image' || thumbnailUrl !== `${url}?thumb=1`))
    throw invalidField(
      `${field}.thumbnailUrl`,
      'must be the url followed by ?thumb=1, and only for an image',
      thumbnailUrl,
    );
  for (const name of ['durationMs', 'width', 'height'] as const) {
    const value: unknown = attachment[name];
    if (value !== undefined && !(typeof value === 'number' && value >= 0))
      throw invalidField(`${field}.${name}`, 'must be a number of at least 0', value);
  }
}

function isAddressWith(url: string, path: string): boolean {
  if (!url.endsWith(path) || url.length > MAX_URL_LENGTH) return false;
  const base = url.slice(0, -path.length);
  return base === '' || (/^[\x21-\x7e]+$/.test(base) && isWebAddress(base));
}

function checkState({ roomId, data, bytes }: LineOf<'state'>, limits: Limits): void {
  checkRoomId(roomId, limits);
  if (data.updatedBy !== null) checkId('updatedBy', data.updatedBy, limits);
  const content = Buffer.from(bytes ?? '', 'base64');
  if (content.toString('base64') !== (bytes ?? '')) throw invalid('bytes must be canonical base64 (RFC 4648)');
  if (content.byteLength > MAX_STATE_BYTES)
    throw invalidField('bytes', `must be at most ${MAX_STATE_BYTES} bytes`, content.byteLength);
  if (content.byteLength !== data.sizeBytes || digestOf(content) !== data.digest)
    throw invalid('sizeBytes and digest must be those of the bytes');
}

function checkRoom({ roomId, metadata }: LineOf<'room'>['data'], limits: Limits): void {
  checkRoomId(roomId, limits);
  checkStoredMetadata(metadata, limits);
}

function checkThread({ roomId, userId, resolvedBy, position, metadata }: ThreadRecord, limits: Limits): void {
  checkRoomId(roomId, limits);
  checkId('userId', userId, limits);
  if (resolvedBy !== null) checkId('resolvedBy', resolvedBy, limits);
  if (position !== null) checkPosition(position, limits);
  checkStoredMetadata(metadata, limits);
}

function checkNotification({ userId, roomId, actorId }: Notification, limits: Limits): void {
  checkId('userId', userId, limits);
  checkRoomId(roomId, limits);
  checkId('actorId', actorId, limits);
}

function checkComment(comment: Comment, environmentId: string, limits: Limits): void {
  const { userId, body, mentions, attachments, metadata } = comment;
  checkId('userId', userId, limits);
  checkBody(body, limits, attachments.length);
  checkMentions(mentions, limits);
  if (attachments.length > limits.attachments)
    throw invalidField('attachments', `must hold at most ${limits.attachments}`, attachments.length);
  attachments.forEach((attachment, index) => checkAttachment(`attachments[${index}]`, attachment, environmentId));
  checkReactions(comment, limits);
  checkStoredMetadata(metadata, limits);
}

function checkItem(
  { kind, state, roomId, threadId, commentId, userId, comment, thread, keptReports = [] }: ModerationItem,
  environmentId: string,
  limits: Limits,
): void {
  checkRoomId(roomId, limits);
  checkId('userId', userId, limits);
  if ((kind === 'report') !== (state === 'reported'))
    throw invalidField('state', 'must be reported for a report, and held for anything else', state);
  if (kind !== 'report' && comment === null)
    throw invalid('comment must be given, except for a report of an earlier version');
  if ((kind === 'thread') !== (thread !== null)) throw invalid('thread must be given for a thread, and only for one');
  if (comment !== null) checkComment(comment, environmentId, limits);
  if (thread !== null) checkThread(thread, limits);
  for (const report of keptReports) checkReport(report, limits);
  const ids = [
    comment?.id ?? commentId,
    comment?.threadId ?? threadId,
    comment?.userId ?? userId,
    thread?.id ?? threadId,
    thread?.roomId ?? roomId,
  ];
  if (ids.join(' ') !== [commentId, threadId, userId, threadId, roomId].join(' '))
    throw invalid('roomId, threadId, commentId and userId must be those of the content');
}

function checkReport({ userId }: Report, limits: Limits): void {
  if (userId !== null) checkId('userId', userId, limits);
}

/** As `checkMetadata`, but refuses the keys that the API drops, since an export never contains them. */
function checkStoredMetadata(metadata: Metadata, limits: Limits): void {
  for (const key of ['__proto__', 'constructor'])
    if (Object.hasOwn(metadata, key)) throw invalid(`metadata must not have the key ${key}`);
  checkMetadata(metadata, limits);
}

/**
 * Throws `invalid_request` for text that is not well-formed and for invalid times, anywhere in a line. The depth of the
 * line is bounded.
 */
function checkText(value: unknown, path: string): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw invalid(`${path} must be well-formed Unicode, without lone surrogates`);
    if (TIME_PATH.test(path) && Number.isNaN(Date.parse(value)))
      throw invalidField(path, 'must be a time such as 2026-01-02T03:04:05.678Z', value);
  } else if (Array.isArray(value)) {
    value.forEach((entry, index) => checkText(entry, `${path}[${index}]`));
  } else if (isRecord(value)) {
    for (const [key, entry] of Object.entries(value)) {
      if (!key.isWellFormed()) throw invalid(`Keys of ${path} must be well-formed Unicode, without lone surrogates`);
      checkText(entry, path === '' ? key : `${path}.${key}`);
    }
  }
}
