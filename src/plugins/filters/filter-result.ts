import * as Type from 'typebox';
import { InputSchema } from '../../domain/input/validate.ts';
import { MetadataSchema } from '../../model/metadata.ts';
import type { DraftPatch } from '../../model/filter.ts';
import type { FilterName } from '../api.ts';

/** The validated result of a filter. */
export type FilterDecision =
  | { readonly kind: 'pass'; readonly fields: DraftPatch }
  | { readonly kind: 'reject'; readonly message: string; readonly status: 400 | 403 }
  | { readonly kind: 'hold'; readonly reason: string };

const MAX_MESSAGE_LENGTH = 500;
const holdable = new Set<FilterName>(['comment.create', 'comment.update', 'thread.create']);
const patchFields = ['body', 'mentions', 'metadata'];
const patch = new InputSchema(
  Type.Object({
    body: Type.Optional(Type.String()),
    mentions: Type.Optional(Type.Array(Type.String())),
    metadata: Type.Optional(MetadataSchema),
  }),
);

/** Whether the content of this filter can be changed and held. */
export function isHoldable(name: FilterName): boolean {
  return holdable.has(name);
}

/** Checks what a filter returned. Throws an `Error` that says what is wrong with it. */
export function readResult(name: FilterName, result: unknown): FilterDecision {
  if (result === undefined || result === null) return { kind: 'pass', fields: {} };
  if (typeof result !== 'object' || Array.isArray(result))
    throw new Error(
      `returned ${Array.isArray(result) ? 'an array' : `a ${typeof result}`} instead of nothing, a patch, reject(…) or hold(…)`,
    );
  const { outcome, message, status, reason } = result as Readonly<Record<string, unknown>>;
  if (outcome === 'reject')
    return { kind: 'reject', message: text(message) || 'This was refused', status: status === 400 ? 400 : 403 };
  if (outcome === 'hold') {
    if (!isHoldable(name)) throw new Error(`returned hold(…), which ${name} does not allow`);
    return { kind: 'hold', reason: text(reason) };
  }
  return { kind: 'pass', fields: readPatch(name, result) };
}

function readPatch(name: FilterName, result: object): DraftPatch {
  const fields = Object.fromEntries(Object.entries(result).filter(([, value]) => value !== undefined));
  const forbidden = Object.keys(fields).find((field) => !isHoldable(name) || !patchFields.includes(field));
  if (forbidden !== undefined)
    throw new Error(`returned a patch of ${forbidden}, which a filter of ${name} cannot change`);
  if (!patch.check(fields)) throw new Error('returned a patch whose fields have wrong types');
  if (!JSON.stringify(fields).isWellFormed()) throw new Error('returned text with lone surrogates');
  return fields;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.toWellFormed().slice(0, MAX_MESSAGE_LENGTH) : '';
}
