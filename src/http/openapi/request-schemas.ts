import type { TSchema } from 'typebox';
import { isRecord, nullMeansAbsent } from '../../domain/input/validate.ts';

const made = new WeakMap<TSchema, TSchema>();

/**
 * The schema of what a client may send, made of the schema that validates it: the fields whose null means that they are
 * absent may be null. Returns the same object for the same schema, and the schema itself if it has no such fields.
 */
export function requestSchema(schema: TSchema): TSchema {
  let request = made.get(schema);
  if (request === undefined) {
    request = withNulls(schema);
    made.set(schema, request);
  }
  return request;
}

/** A copy of a schema that also allows null. */
export function orNull(schema: TSchema): TSchema {
  const { type, anyOf, const: only, ...rest }: { type?: unknown; anyOf?: unknown; const?: unknown } = schema;
  if (Array.isArray(anyOf)) return { anyOf: [...(anyOf as TSchema[]), { type: 'null' }], ...rest };
  // A schema without a type allows everything.
  if (typeof type !== 'string') return schema;
  return { type: [type, 'null'], ...('const' in schema ? { enum: [only, null] } : {}), ...rest };
}

function withNulls(schema: TSchema): TSchema {
  const { properties }: { properties?: unknown } = schema;
  if (!isRecord(properties)) return schema;
  const fields = Object.entries(properties as Record<string, TSchema>).map(([name, field]): [string, TSchema] => {
    const request = requestSchema(field);
    return [name, nullMeansAbsent(schema, name, field) ? orNull(request) : request];
  });
  return fields.every(([name, field]) => field === properties[name])
    ? schema
    : { ...schema, properties: Object.fromEntries(fields) };
}
