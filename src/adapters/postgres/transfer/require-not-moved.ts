import { MOVE_KEY, moveNotice, MOVES, parseMoveState } from '../../../model/move.ts';
import { EngineError } from '../../../ports/engine-error.ts';
import { quote } from '../connection.ts';
import type { Pool } from '../pool.ts';

/**
 * Rejects with an `EngineError` if the store in this database was moved to another one, or is the target of an
 * unfinished move.
 */
export async function requireNotMoved(pool: Pool): Promise<void> {
  const [rows] = await pool.run(
    `select value from collab.records where partition = ${quote(MOVES)} and key = ${quote(MOVE_KEY)}`,
  );
  const state = parseMoveState(rows?.[0]?.[0] ?? undefined);
  if (state !== undefined)
    throw new EngineError('store.url', moveNotice(`PostgreSQL at ${pool.target.label}`, state), { retry: false });
}
