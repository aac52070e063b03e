import Type from 'typebox';

/** Custom facts of the operator's product on a room, thread, comment or user (decisions §10). */
export type Metadata = Readonly<Record<string, string | number | boolean>>;

export const MetadataSchema = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  { description: 'At most 50 keys of at most 40 characters; strings of at most 4 000 characters, numbers, booleans.' },
);
