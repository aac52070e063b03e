import { moveNotice, parseMoveState } from '../../model/move.ts';
import { EngineError } from '../../ports/engine-error.ts';

/**
 * Throws if the store in folder `path` was moved to another one, or is the target of an unfinished move.
 *
 * @param text the record of the move in it, if it has one
 * @throws {EngineError} naming the folder and the other store
 */
export function requireNotMoved(path: string, text: string | undefined): void {
  const state = parseMoveState(text);
  if (state !== undefined)
    throw new EngineError('store.url', moveNotice(`the folder ${path}`, state), { retry: false });
}
