import Type from 'typebox';
import type { MediaType } from './environment.ts';

/** A file as the upload answers with it and as comments carry it. */
export interface Attachment {
  readonly id: string;
  readonly type: MediaType;
  readonly filename: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly url: string;
  readonly thumbnailUrl?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

/** What the store keeps of an upload besides: who sent it, what holds it, and what its content is. */
export interface StoredFile {
  readonly attachment: Attachment;
  readonly uploadedBy: string;
  /** Comment that links it; null until one does. */
  readonly commentId: string | null;
  /** SHA-256 of the content, hex. */
  readonly sha256: string;
  readonly createdAt: string;
  /** Of an image from which no thumbnail can be made, though it looked well when it came. */
  readonly noThumbnail?: true | undefined;
}

/** The types that are accepted, and what each is (docs/api.md, "Files"). */
export const acceptedTypes: Readonly<Record<string, MediaType>> = {
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

/** What content may show itself as that is declared as a type: containers don't tell sound from video. */
const compatibleTypes: readonly (readonly string[])[] = [
  ['image/png', 'image/apng'],
  ['audio/webm', 'video/webm'],
  ['audio/mp4', 'audio/x-m4a', 'video/mp4', 'video/x-m4v', 'video/quicktime'],
  ['audio/ogg', 'application/ogg'],
  ['audio/wav', 'audio/x-wav', 'audio/vnd.wave'],
];

/** Whether content of the type `shown` contradicts the type that it was declared as. Both without parameters. */
export function contradicts(shown: string, declared: string): boolean {
  return shown !== declared && !compatibleTypes.some((family) => family.includes(shown) && family.includes(declared));
}

/** `attachmentIds` of a create or an edit. */
export const attachmentIds = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));
