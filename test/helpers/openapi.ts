import { Check } from 'typebox/value';
import type { TSchema } from 'typebox';
import { openapiDocument } from '../../src/http/openapi/openapi.ts';

/** A body as the document describes it. */
export interface Media {
  readonly schema: unknown;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly $ref: string }>>;
}

export interface Response {
  readonly description: string;
  readonly content?: Readonly<Record<string, Media>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: unknown;
  readonly example?: unknown;
}

/** An operation with where it stands. */
export interface Operation {
  readonly method: string;
  /** Parameters as `{name}`. */
  readonly path: string;
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
}

/** The OpenAPI document as its readers get it: plain JSON. */
export const document = JSON.parse(JSON.stringify(openapiDocument())) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

/** Every operation below the prefix of the API. */
export const operations: readonly Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  'servers' in item
    ? []
    : Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
);

/** Whether a value is as a schema of the document says. */
export function isAs(schema: unknown, value: unknown): boolean {
  return Check(resolved(schema) as TSchema, value);
}

/** The target of a reference in the document. */
export function target(ref: string): unknown {
  const [group = '', name = ''] = ref.replace('#/components/', '').split('/');
  return document.components[group]?.[name];
}

/** A part of the document with every reference replaced by what it stands for. */
export function resolved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(resolved);
  if (typeof part !== 'object' || part === null) return part;
  if ('$ref' in part && typeof part.$ref === 'string') return resolved(target(part.$ref));
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolved(value)]));
}
