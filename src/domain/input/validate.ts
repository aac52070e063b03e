import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/schema';
import type { TLocalizedValidationError } from 'typebox/error';
import { Default } from 'typebox/value';
import { formatValue } from '../../lib/format-value.ts';
import { CollabError, type FieldError, invalidField } from '../../model/errors.ts';

/** A schema with its validator, which is compiled at its first use. */
export class InputSchema<S extends TSchema> {
  readonly schema: S;
  /**
   * The fields whose strings must be well-formed Unicode; null for all, also for those that the schema does not name.
   */
  readonly textFields: readonly string[] | null;
  #compiled: Validator<Record<never, never>, S> | undefined;

  /**
   * @param allowsMalformedText whether strings need not be well-formed Unicode
   * @param passesOtherFields whether fields that the schema does not name are used, too
   */
  constructor(
    schema: S,
    {
      allowsMalformedText = false,
      passesOtherFields = false,
    }: { allowsMalformedText?: boolean; passesOtherFields?: boolean } = {},
  ) {
    this.schema = schema;
    const named = allowsMalformedText ? [] : Object.keys(schemaAt(schema, '/properties'));
    this.textFields = passesOtherFields ? null : named;
  }

  check(value: unknown): value is Static<S> {
    return this.#validator().Check(value);
  }

  errors(value: unknown): TLocalizedValidationError[] {
    return this.#validator().Errors(value)[1];
  }

  #validator(): Validator<Record<never, never>, S> {
    this.#compiled ??= Compile(this.schema);
    return this.#compiled;
  }
}

/**
 * Validates a value against a schema. Keys of `metadata` that could reach a prototype are dropped; fields that the
 * schema does not name are kept and must be ignored. An optional field that is `null` counts as absent, unless its
 * schema allows null. Throws `invalid_request`, which names the first invalid field, its bound and what was sent, and
 * has the other invalid fields as `fields`; also for lone surrogates.
 *
 * @param where prefix of the field path in messages, e.g. `data` for a field of a message; '' for a request body
 */
export function validate<S extends TSchema>(input: InputSchema<S>, value: unknown, where = ''): Static<S> {
  const safe = withSafeMetadata(value);
  // Only bodies that are not valid as they are can have a null to remove.
  if (input.check(safe)) return wellFormed(input, safe, where);
  const cleaned = withoutNulls(input.schema, safe);
  if (input.check(cleaned)) return wellFormed(input, cleaned, where);
  const faults = faultsIn(input, cleaned);
  const fault = selectFault(faults);
  if (fault === undefined) throw new CollabError('invalid_request', 'The body is invalid');
  requireAlternative(input.schema, cleaned, where, faults);
  if (fieldPaths(where, fault)[0] === '')
    throw new CollabError('invalid_json', `The body must be a JSON object, not ${formatValue(cleaned)}`);
  const fields = fieldErrors(input.schema, cleaned, where, fault, faults);
  throw new CollabError('invalid_request', fields[0]?.message ?? '', undefined, fields);
}

/**
 * Entries of a list or map in which faults are looked for at once: more than any schema allows of a list, and enough to
 * tell what is wrong.
 */
const CHECKED_ENTRIES = 2_000;

/**
 * The faults of an invalid value: of each list and map only those of some entries, as 256 KiB have room for 100 000,
 * each with a fault of its own. Of a list those are the first ones, whose number alone is a fault if there are more; of
 * a map the first ones in which there is a fault.
 */
function faultsIn<S extends TSchema>(input: InputSchema<S>, value: unknown): TLocalizedValidationError[] {
  if (!isRecord(value)) return input.errors(value);
  // To look for a fault takes a thirtieth of the time that it takes to say which one it is.
  for (const part of partsOf(input.schema, value)) if (!input.check(part)) return input.errors(part);
  // What is wrong is none of the entries.
  return input.errors(value);
}

/** Values with the first entries of each list, and of each map some, together all. */
function* partsOf(schema: TSchema, value: Record<string, unknown>): Iterable<Record<string, unknown>> {
  const properties = schemaAt(schema, '/properties');
  const others: [string, unknown][] = [];
  const maps: [string, [string, unknown][]][] = [];
  for (const [name, content] of Object.entries(value)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (Array.isArray(content)) others.push([name, content.slice(0, CHECKED_ENTRIES)]);
    else if (isRecord(content) && isRecord(field) && !isRecord(field['properties']))
      maps.push([name, Object.entries(content)]);
    else others.push([name, content]);
  }
  const longest = Math.max(0, ...maps.map(([, entries]) => entries.length));
  for (let from = 0; from === 0 || from < longest; from += CHECKED_ENTRIES) {
    const some = maps.map(([name, all]): [string, unknown] => [
      name,
      Object.fromEntries(all.slice(from, from + CHECKED_ENTRIES)),
    ]);
    yield Object.fromEntries([...others, ...some]);
  }
}

/** Returns a valid value. Throws `invalid_request` if one of its texts has a lone surrogate. */
function wellFormed<T>(input: InputSchema<TSchema>, value: T, where: string): T {
  const malformed = malformedField(input.textFields, value);
  if (malformed !== null)
    throw invalidField(joinPath(where, malformed), 'must be well-formed Unicode, without lone surrogates');
  return value;
}

/** One error for each field, that of `first` first. */
function fieldErrors(
  root: TSchema,
  value: unknown,
  where: string,
  first: TLocalizedValidationError,
  faults: readonly TLocalizedValidationError[],
): FieldError[] {
  const byPath = new Map<string, FieldError>();
  for (const fault of [first, ...faults]) {
    const selected =
      fault === first
        ? first
        : (selectFault(faults.filter(({ instancePath }) => instancePath === fault.instancePath)) ?? fault);
    for (const path of fieldPaths(where, selected)) {
      if (byPath.size < MAX_FIELD_ERRORS && !byPath.has(path))
        byPath.set(path, {
          path,
          message: `${path} ${constraintOf(root, selected)}${sentText(selected, path, value)}`,
        });
    }
  }
  return [...byPath.values()];
}

const MAX_FIELD_ERRORS = 20;

/**
 * If the first fault is in a union of objects that one field tells apart, such as `type`: throws `invalid_request` for
 * that field, or for what is wrong in the alternative that it names. The faults themselves are those of all
 * alternatives.
 */
function requireAlternative(
  root: TSchema,
  value: unknown,
  where: string,
  faults: readonly TLocalizedValidationError[],
): void {
  const [unionPath, inside] = (faults[0]?.schemaPath ?? '').split('/anyOf/');
  if (unionPath === undefined || inside === undefined) return;
  const alternatives = recordsIn(schemaAt(root, unionPath)['anyOf']);
  const [first] = alternatives.map(({ properties }) => (isRecord(properties) ? properties : {}));
  const field = Object.keys(first ?? {}).find((name) =>
    alternatives.every((alternative) => constantOf(alternative, name) !== undefined),
  );
  if (field === undefined) return;
  const pointers = faults
    .filter(({ schemaPath }) => schemaPath.startsWith(`${unionPath}/anyOf/`))
    .map(({ instancePath }) => instancePath);
  const pointer = pointers.reduce((shortest, other) => (other.length < shortest.length ? other : shortest));
  const given = valueAt(value, pointer);
  if (!isRecord(given)) return;
  const path = pointerSegments(pointer).reduce(joinPath, where);
  const alternative = alternatives.find((candidate) => constantOf(candidate, field) === given[field]);
  if (alternative === undefined) {
    const names = alternatives.map((candidate) => String(constantOf(candidate, field))).join(', ');
    throw invalidField(
      joinPath(path, field),
      field in given ? `must be one of ${names}, not ${formatValue(given[field])}` : `is required: one of ${names}`,
    );
  }
  validate(new InputSchema(alternative), Default(alternative, structuredClone(given)), path);
}

/** The constant that a field of an object must have; undefined if it may have several values. */
function constantOf({ properties }: Record<string, unknown>, name: string): unknown {
  const field = isRecord(properties) ? properties[name] : undefined;
  return isRecord(field) ? field['const'] : undefined;
}

/** The value that was sent in an invalid field, to follow its constraint: its length if that is what is wrong. */
function sentText(fault: TLocalizedValidationError, path: string, value: unknown): string {
  // A refinement of a schema says itself what is wrong.
  if (fault.keyword === 'required' || fault.keyword === '~refine') return '';
  const sent = valueAt(value, fault.instancePath);
  if (/^m(?:in|ax)(?:Length|Items)$/.test(fault.keyword) && (typeof sent === 'string' || Array.isArray(sent)))
    return `, not ${sent.length}`;
  if (!SECRET_FIELD.test(path) || typeof sent === 'object') return `, not ${formatValue(sent)}`;
  return fault.keyword === 'pattern' ? '' : `, not a ${typeof sent}`;
}

/** The value at a JSON pointer; undefined if there is none. */
function valueAt(value: unknown, pointer: string): unknown {
  return pointerSegments(pointer).reduce(
    (node, segment) =>
      typeof node === 'object' && node !== null ? (Reflect.get(node, segment) as unknown) : undefined,
    value,
  );
}

/** Fields whose values no message shows. */
const SECRET_FIELD = /(?:password|secret|token|key)[^.[]*$/i;

/** Whether a value is an object, and neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects in an array; none if the value is no array. */
function recordsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

const unsafeKeys = ['__proto__', 'constructor'];

function withSafeMetadata(value: unknown): unknown {
  if (!isRecord(value) || !isRecord(value['metadata'])) return value;
  const { metadata } = value;
  if (!unsafeKeys.some((key) => Object.hasOwn(metadata, key))) return value;
  return {
    ...value,
    metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => !unsafeKeys.includes(key))),
  };
}

/**
 * A copy of a value without the fields whose null means that they are absent. Looks into nested objects, not into
 * arrays.
 */
function withoutNulls(schema: object, value: unknown): unknown {
  const { properties }: { properties?: unknown } = schema;
  if (!isRecord(properties) || !isRecord(value)) return value;
  const kept = Object.entries(value).flatMap(([name, content]): [string, unknown][] => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isRecord(field)) return [[name, content]];
    return content === null && nullMeansAbsent(schema, name, field) ? [] : [[name, withoutNulls(field, content)]];
  });
  return Object.fromEntries(kept);
}

/**
 * Whether `validate` takes null for a field of an object as if the field were absent: it is optional, and its schema
 * does not allow null.
 */
export function nullMeansAbsent(object: object, name: string, field: object): boolean {
  const { required }: { required?: unknown } = object;
  return !(Array.isArray(required) && required.includes(name)) && !allowsNull(field);
}

function allowsNull(schema: object): boolean {
  const { type, anyOf }: { type?: unknown; anyOf?: unknown } = schema;
  return (
    type === 'null' ||
    (Array.isArray(anyOf) && anyOf.some((alternative) => isRecord(alternative) && allowsNull(alternative)))
  );
}

/**
 * The path of the first of these fields, or of all, with a string, key or entry that is not well-formed Unicode; null
 * if there is none.
 */
function malformedField(names: readonly string[] | null, value: unknown): string | null {
  if (!isRecord(value)) return null;
  if (names === null) return malformedEntry(value);
  for (const name of names) {
    const content = value[name];
    if (typeof content === 'string') {
      if (!content.isWellFormed()) return name;
    } else if (typeof content === 'object' && content !== null) {
      const entry = malformedEntry(content);
      if (entry !== null) return joinPath(name, entry);
    }
  }
  return null;
}

function malformedEntry(content: object): string | null {
  for (const [key, entry] of Object.entries(content)) {
    if (!key.isWellFormed() || (typeof entry === 'string' && !entry.isWellFormed())) return key.toWellFormed();
  }
  return null;
}

/** The first error; if that is inside the alternatives of a union, the error of the union itself. */
function selectFault(faults: readonly TLocalizedValidationError[]): TLocalizedValidationError | undefined {
  const first = faults[0];
  if (first === undefined) return undefined;
  const union = first.schemaPath.indexOf('/anyOf/');
  if (union < 0) return first;
  const path = first.schemaPath.slice(0, union);
  return faults.find((fault) => fault.keyword === 'anyOf' && fault.schemaPath === path) ?? first;
}

/** The path of the field; of all of them if several are missing. */
function fieldPaths(where: string, fault: TLocalizedValidationError): string[] {
  let path = where;
  for (const segment of pointerSegments(fault.instancePath)) path = joinPath(path, segment);
  return fault.keyword === 'required' ? fault.params.requiredProperties.map((name) => joinPath(path, name)) : [path];
}

const MAX_SEGMENT_LENGTH = 60;

function joinPath(path: string, segment: string): string {
  if (/^\d+$/.test(segment)) return `${path}[${segment}]`;
  const name = segment.length > MAX_SEGMENT_LENGTH ? `${segment.slice(0, MAX_SEGMENT_LENGTH)}…` : segment;
  return path === '' ? name : `${path}.${name}`;
}

function pointerSegments(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The constraint that a message names for an invalid field, e.g. `must be at most 10 characters`. */
function constraintOf(root: TSchema, fault: TLocalizedValidationError): string {
  if (fault.keyword === 'required') return 'is required';
  const schema = schemaAt(root, fault.schemaPath);
  switch (fault.keyword) {
    case 'anyOf':
      return unionConstraint(schema['anyOf']);
    case 'minimum':
    case 'maximum':
      return rangeText(numberIn(schema, 'minimum'), numberIn(schema, 'maximum'), '');
    case 'minLength':
    case 'maxLength':
      return rangeText(numberIn(schema, 'minLength'), numberIn(schema, 'maxLength'), 'characters');
    case 'minItems':
    case 'maxItems':
      return rangeText(numberIn(schema, 'minItems'), numberIn(schema, 'maxItems'), 'items');
    case 'pattern':
      return `must match ${String(schema['pattern'])}`;
    case 'type':
      return `must be ${withArticle(schema['type'])}`;
    default:
      return fault.message;
  }
}

function schemaAt(root: TSchema, schemaPath: string): Record<string, unknown> {
  let node: unknown = root;
  for (const segment of pointerSegments(schemaPath))
    node = isRecord(node) || Array.isArray(node) ? Reflect.get(node, segment) : undefined;
  return isRecord(node) ? node : {};
}

function unionConstraint(alternatives: unknown): string {
  const schemas = recordsIn(alternatives);
  const constants = schemas.filter((schema) => 'const' in schema).map((schema) => String(schema['const']));
  if (constants.length === schemas.length) return `must be one of ${constants.join(', ')}`;
  const types = schemas.map((schema) =>
    'const' in schema ? String(schema['const']) : withArticle(schema['type']) + alternativeBounds(schema),
  );
  return `must be ${types.slice(0, -1).join(', ')} or ${types.at(-1) ?? ''}`;
}

/** The bounds of an alternative of a union, to follow its type; '' if it has none. */
function alternativeBounds(schema: Record<string, unknown>): string {
  const [minimum, maximum, minLength, maxLength] = ['minimum', 'maximum', 'minLength', 'maxLength'].map((name) =>
    numberIn(schema, name),
  );
  if (minimum !== undefined && maximum !== undefined) return ` between ${minimum} and ${maximum}`;
  return maxLength === undefined ? '' : ` of ${minLength ?? 0} to ${maxLength} characters`;
}

function withArticle(type: unknown): string {
  const name = String(type);
  if (name === 'null') return name;
  return /^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`;
}

function numberIn(schema: Record<string, unknown>, name: string): number | undefined {
  const value = schema[name];
  return typeof value === 'number' ? value : undefined;
}

function rangeText(
  minimum: number | undefined,
  maximum: number | undefined,
  unit: '' | 'characters' | 'items',
): string {
  const count = (bound: number | undefined): string =>
    unit === '' ? String(bound) : `${bound} ${bound === 1 ? unit.slice(0, -1) : unit}`;
  if (minimum === undefined) return `must be at most ${count(maximum)}`;
  if (maximum === undefined) return `must be at least ${count(minimum)}`;
  return unit === '' ? `must be between ${minimum} and ${maximum}` : `must be ${minimum} to ${count(maximum)}`;
}
