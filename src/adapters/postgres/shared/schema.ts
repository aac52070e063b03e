import { CALLS_FUNCTION } from './calls-function.ts';
import { SWEEP_FUNCTION } from './sweep-function.ts';
import { TABLES } from './tables.ts';

/**
 * Creates shared memory in the schema `collab`, where it is missing. One transaction (a simple query of several
 * statements), under a lock that ends with it: several nodes may do this at once, also through a pooler.
 *
 * Another version of a function gets another name, so nodes of two versions work side by side.
 */
export const CREATE_SHARED = `
select pg_advisory_xact_lock(1129270347);
do $$ begin if to_regnamespace('collab') is null then create schema collab; end if; end $$;
${TABLES}${CALLS_FUNCTION}${SWEEP_FUNCTION}`;

/** Whether shared memory was created: `t` or `f`. */
export const IS_CREATED = "select to_regprocedure('collab.shared_sweep_1(float8, float8)') is not null";

/** SQLSTATEs of a call while there is no function, table or schema of shared memory. */
export const MISSING: ReadonlySet<string> = new Set(['42883', '42P01', '3F000']);
