import { isDeepStrictEqual } from 'node:util';
import type { AuditDetails } from '../../model/environments/audit.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { isRecord } from '../input/validate.ts';

/**
 * The fields that differ between two versions of an environment, by path. Numbers, booleans and null are given with
 * their new value; of anything else, which may contain a secret, only that it was changed.
 */
export function changedSettings(before: Environment, after: Environment): AuditDetails {
  const { updatedAt: _before, ...old } = before;
  const { updatedAt: _after, ...current } = after;
  return Object.fromEntries(differences('', old, current));
}

function differences(path: string, before: unknown, after: unknown): [string, string | number | boolean | null][] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => differences(path === '' ? key : `${path}.${key}`, before[key], after[key]));
  }
  const isPlain = after === null || typeof after === 'number' || typeof after === 'boolean';
  return [[path, isPlain ? after : after === undefined ? 'removed' : 'changed']];
}
