import { resolve } from 'node:path';
import type { TSchema } from 'typebox';

/**
 * A configuration whose paths are absolute: relative ones are resolved from `folder`, that of config.json. An option is
 * a path if its schema has `isPath: true`; options of objects are included, items of arrays are not. What is no text
 * stays as it is.
 */
export function resolvePaths(schema: TSchema, value: unknown, folder: string): unknown {
  const { isPath, properties } = schema as { isPath?: unknown; properties?: Readonly<Record<string, TSchema>> };
  if (isPath === true && typeof value === 'string' && value !== '') return resolve(folder, value);
  if (properties === undefined || typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, option]) => [
      name,
      Object.hasOwn(properties, name) ? resolvePaths(properties[name] as TSchema, option, folder) : option,
    ]),
  );
}
