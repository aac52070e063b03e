import * as Type from 'typebox';

/** Custom data of the embedding product on a room, thread, comment or user (docs/api.md, "Metadata"). */
export type Metadata = Readonly<Record<string, string | number | boolean>>;

/** Whether metadata have all of these values, compared as text, under these keys. */
export function hasMetadata(
  metadata: Metadata,
  wanted: readonly (readonly [key: string, value: string])[] = [],
): boolean {
  return wanted.every(([key, value]) => Object.hasOwn(metadata, key) && String(metadata[key]) === value);
}

/** The schema of metadata. Bounds are checked by `checkMetadata`, since an environment may override them. */
export const MetadataSchema = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
  description: 'At most 50 keys of at most 40 characters; strings of at most 4 000 characters, numbers, booleans.',
});
