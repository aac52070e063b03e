import { sampleOf, type SchemaNode, type Seeds } from './route-calls.ts';

/** A field of a body, or of an object in it. */
export interface Field {
  /** From the body down. */
  readonly path: readonly string[];
  readonly schema: SchemaNode;
  readonly required: boolean;
}

/** The fields of a body and of the objects in it. */
export function fieldsOf(schema: SchemaNode, path: readonly string[] = []): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const field = { path: [...path, name], schema: inner, required: schema.required?.includes(name) === true };
    return [field, ...fieldsOf(inner, field.path)];
  });
}

/** A body with one field set, deep inside if need be. What is around the field is as little as its schema allows. */
export function withField(
  schema: SchemaNode,
  body: unknown,
  path: readonly string[],
  value: unknown,
  seeds: Seeds,
): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const inner = schema.properties?.[name] ?? {};
  const current = (body as Record<string, unknown>)[name] ?? sampleOf(inner, name, seeds);
  return { ...(body as object), [name]: withField(inner, current, rest, value, seeds) };
}

/** A body without one field. */
export function withoutField(body: unknown, [name = '', ...rest]: readonly string[]): unknown {
  const { [name]: inner, ...others } = body as Record<string, unknown>;
  return rest.length === 0 ? others : { ...others, [name]: withoutField(inner, rest) };
}

/** The path of a field as refusals name it. */
export const nameOf = ({ path }: Field): string => path.join('.');
