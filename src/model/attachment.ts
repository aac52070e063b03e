import * as Type from 'typebox';
import type { MediaKind } from './environments/environment.ts';

/** A file as uploads return it and comments contain it. */
export interface Attachment {
  readonly id: string;
  readonly type: MediaKind;
  readonly filename: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly url: string;
  readonly thumbnailUrl?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

/** The stored record of a file. */
export interface StoredFile {
  readonly attachment: Attachment;
  readonly uploadedBy: string;
  /** Id of the comment that links it; null until one does. */
  readonly commentId: string | null;
  /** SHA-256 of the content, hex. */
  readonly sha256: string;
  readonly createdAt: string;
  /** Set while the comment that links it, or the edit of it, is held for moderation. */
  readonly held?: true | undefined;
  /** Set if making the thumbnail of an image failed, although the image passed the checks of the upload. */
  readonly noThumbnail?: true | undefined;
}

/** The accepted MIME types, and the media type of each (docs/api.md, "Files"). */
export const acceptedTypes: Readonly<Record<string, MediaKind>> = {
  'image/jpeg': 'image',
  'image/png': 'image',
  'image/gif': 'image',
  'image/webp': 'image',
  'audio/webm': 'audio',
  'audio/ogg': 'audio',
  'audio/mp4': 'audio',
  'audio/mpeg': 'audio',
  'audio/wav': 'audio',
  'video/webm': 'video',
  'video/mp4': 'video',
};

/** Other names of accepted types, which clients send. */
const aliases: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'audio/mp3': 'audio/mpeg',
  'audio/x-mp3': 'audio/mpeg',
  'audio/x-m4a': 'audio/mp4',
  'audio/m4a': 'audio/mp4',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'video/x-m4v': 'video/mp4',
  'audio/matroska': 'audio/webm',
  'audio/x-matroska': 'audio/webm',
  'video/matroska': 'video/webm',
  'video/x-matroska': 'video/webm',
};

/** The accepted type that a `Content-Type` names, by its own name or another one; undefined if it names none. */
export function acceptedType(contentType: string): { mimeType: string; type: MediaKind } | undefined {
  const declared = contentType.split(';', 1).join().trim().toLowerCase();
  const mimeType = Object.hasOwn(aliases, declared) ? (aliases[declared] ?? declared) : declared;
  const type = Object.hasOwn(acceptedTypes, mimeType) ? acceptedTypes[mimeType] : undefined;
  return type === undefined ? undefined : { mimeType, type };
}

/** MIME types that detection cannot tell apart, e.g. because a container may have audio or video. */
const compatibleTypes: readonly (readonly string[])[] = [
  ['image/png', 'image/apng'],
  ['audio/webm', 'video/webm'],
  ['audio/mp4', 'audio/x-m4a', 'video/mp4', 'video/x-m4v', 'video/quicktime'],
  ['audio/ogg', 'application/ogg'],
  ['audio/wav', 'audio/x-wav', 'audio/vnd.wave'],
];

/** Whether a MIME type detected in the content contradicts the declared one. Both without parameters. */
export function contradicts(detected: string, declared: string): boolean {
  return (
    detected !== declared && !compatibleTypes.some((types) => types.includes(detected) && types.includes(declared))
  );
}

/** The schema of `attachmentIds` in a create or an edit. */
export const attachmentIds = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));
