import * as Type from 'typebox';
import type { Role } from './role.ts';

/** All roles, from the one that allows least to the one that allows most. */
export const roles = ['viewer', 'member', 'moderator'] as const satisfies readonly Role[];

/** The schema of a role. */
export const roleSchema = (options: { readonly description?: string } = {}) =>
  Type.Union([Type.Literal('viewer'), Type.Literal('member'), Type.Literal('moderator')], options);
