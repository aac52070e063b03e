import type { Test } from 'tap';

const timestamp = (value: unknown): boolean =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));
const string = (value: unknown): boolean => typeof value === 'string';
const number = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const share = (value: unknown): boolean => number(value) && (value as number) >= 0 && (value as number) <= 1;
const object = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

const types = {
  string,
  'non-empty string': (value: unknown) => string(value) && value !== '',
  'string or null': (value: unknown) => value === null || string(value),
  boolean: (value: unknown) => typeof value === 'boolean',
  number,
  count: (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0,
  '0 to 1': share,
  '0 to 1 or null': (value: unknown) => value === null || share(value),
  timestamp,
  'timestamp or null': (value: unknown) => value === null || timestamp(value),
  object,
  'object or null': (value: unknown) => value === null || object(value),
  array: Array.isArray,
  'array of string': (value: unknown) => Array.isArray(value) && value.every(string),
  'array of object': (value: unknown) => Array.isArray(value) && value.every(object),
} satisfies Record<string, (value: unknown) => boolean>;

export type FieldType = keyof typeof types;

/** A row of a table of fields: a field, its type, and a note. */
export type FieldRow = readonly [name: string, type: FieldType, notes?: string];

/** Holds a record beside a table of fields: each is there and of its type. What the record has besides is no fault. */
export function holdsFields(t: Test, record: unknown, rows: readonly FieldRow[]): void {
  const given = (record ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, type, notes] of rows) {
    const passes = Object.hasOwn(given, name) && types[type](given[name]);
    t.ok(passes, [name, type, notes].filter(Boolean).join(' | '), passes ? {} : { found: given[name] });
  }
}
