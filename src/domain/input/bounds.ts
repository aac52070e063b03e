import { invalidField } from '../../model/errors.ts';
import { formatValue } from '../../lib/format-value.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { Metadata } from '../../model/metadata.ts';
import type { Position } from '../../model/thread.ts';

const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

/**
 * A character that shows: no white space, none that Unicode says to ignore where it has no effect (such as zero-width
 * spaces, direction controls, soft hyphens and Hangul fillers), and not the empty Braille pattern.
 */
const SHOWS = /[^\s\p{Default_Ignorable_Code_Point}\u2800]/u;

/** A character that ends a line or a text, with which a name could forge lines of a mail or of a message. */
const BREAKS_LINE = /\p{Cc}/u;

/** The most bytes of UTF-8 in a room id: as a part of a key of the store, it takes a third more. */
const MAX_ROOM_ID_BYTES = 1_280;

/**
 * Throws `invalid_request` unless `roomId` is 1 to `limits.roomIdLength` UTF-16 units of well-formed text without
 * control characters, and at most 1 280 bytes of UTF-8.
 */
export function checkRoomId(roomId: string, limits: Limits): void {
  checkText('roomId', roomId, limits.roomIdLength);
  const bytes = Buffer.byteLength(roomId);
  if (bytes > MAX_ROOM_ID_BYTES)
    throw invalidField('roomId', `must be at most ${MAX_ROOM_ID_BYTES} bytes of UTF-8`, bytes);
}

/**
 * Throws `invalid_request` unless `id` (of a user, chosen by the client) is 1 to `limits.idLength` UTF-16 units of
 * well-formed text without control characters.
 */
export function checkId(field: string, id: string, limits: Limits): void {
  checkText(field, id, limits.idLength);
}

function checkText(field: string, id: string, maxLength: number): void {
  if (id.length < 1 || id.length > maxLength)
    throw invalidField(field, `must be 1 to ${maxLength} characters`, id.length);
  const [unprintable] = UNPRINTABLE.exec(id) ?? [];
  if (unprintable !== undefined)
    throw invalidField(
      field,
      `must not contain control characters or lone surrogates such as ${formatValue(unprintable)}`,
    );
}

/**
 * Throws `invalid_request` unless the text of a comment has 1 to `limits.bodyLength` UTF-16 units, one of which shows.
 * With attachments it may be blank or empty.
 */
export function checkBody(body: string, limits: Limits, attachments = 0): void {
  if (attachments > 0 && body.length <= limits.bodyLength) return;
  if (body.length < 1 || body.length > limits.bodyLength)
    throw invalidField('body', `must be 1 to ${limits.bodyLength} characters`, body.length);
  if (!showsSomething(body))
    throw invalidField(
      'body',
      `must be 1 to ${limits.bodyLength} characters, not only white space or characters that show nothing`,
    );
}

/**
 * The mentions without duplicates, in their order. Throws `invalid_request` if there are too many or one is not a valid
 * id.
 */
export function checkMentions(mentions: readonly string[], limits: Limits): readonly string[] {
  if (mentions.length === 0) return mentions;
  if (mentions.length > limits.mentions)
    throw invalidField('mentions', `must hold at most ${limits.mentions} user ids`, mentions.length);
  mentions.forEach((userId, index) => checkId(`mentions[${index}]`, userId, limits));
  return mentions.length === 1 ? mentions : [...new Set(mentions)];
}

/** Throws `invalid_request` if there are too many keys, or a key or value is too long. */
export function checkMetadata(metadata: Metadata, limits: Limits): void {
  const keys = Object.keys(metadata);
  if (keys.length > limits.metadataKeys)
    throw invalidField('metadata', `must hold at most ${limits.metadataKeys} keys`, keys.length);
  for (const key of keys) {
    if (key.length < 1 || key.length > limits.metadataKeyLength)
      throw invalidField('Keys of metadata', `must be 1 to ${limits.metadataKeyLength} characters`, key.length);
    const value = metadata[key];
    if (typeof value === 'string' && value.length > limits.metadataValueLength) {
      throw invalidField(`metadata.${key}`, `must be at most ${limits.metadataValueLength} characters`, value.length);
    }
  }
}

/** The known fields of a position, in a fixed order. Throws `invalid_request` if one of its texts is too long. */
export function checkPosition(position: Position, limits: Limits): Position {
  for (const field of ['selector', 'path', 'quote', 'quotePrefix', 'quoteSuffix', 'fingerprint'] as const) {
    const length = position[field]?.length ?? 0;
    if (length > limits.selectorLength)
      throw invalidField(`position.${field}`, `must be at most ${limits.selectorLength} characters`, length);
  }
  const {
    x,
    y,
    selector,
    path,
    quote,
    quotePrefix,
    quoteSuffix,
    fingerprint,
    elementOffsetX,
    elementOffsetY,
    scrollX,
    scrollY,
  } = position;
  return {
    x,
    y,
    selector,
    path,
    quote,
    quotePrefix,
    quoteSuffix,
    fingerprint,
    elementOffsetX,
    elementOffsetY,
    scrollX,
    scrollY,
  };
}

/** Whether a reader sees anything of this text. */
export function showsSomething(text: string): boolean {
  return SHOWS.test(text);
}

/** Throws `invalid_request` if the name of a person contains a line break or another control character. */
export function checkName(field: string, name: string): void {
  const [found] = BREAKS_LINE.exec(name) ?? [];
  if (found !== undefined)
    throw invalidField(field, `must not contain line breaks or control characters such as ${formatValue(found)}`);
}

/**
 * Whether text may be an email address: one `@`, with something before and after it, and no white space, no control
 * character and no character that separates or delimits addresses in a header (RFC 5322, "specials").
 */
export function isEmailAddress(text: string): boolean {
  return /^[^\s\p{Cc}@<>,;:"()[\]\\]+@[^\s\p{Cc}@<>,;:"()[\]\\]+$/u.test(text);
}

/** Whether text is an absolute http or https URL. */
export function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
