import { CollabError } from './errors.ts';

/** The partition of the record of a move, which is not moved itself. */
export const MOVES = 'moves';
/** The key of that record: -> MoveState. */
export const MOVE_KEY = 'state';

/**
 * What a store says of a move (`collab migrate`). `unfinished`: it is the target of one that has not ended. `moving`: it
 * is the source, and refuses writes while the last changes are copied. `moved`: its data is elsewhere now.
 */
export interface MoveState {
  readonly kind: 'unfinished' | 'moving' | 'moved';
  /** The other store, without a password: `PostgreSQL at db:5432/collab`. */
  readonly other: string;
  /** The epoch of the source, which identifies the move. */
  readonly epoch: string;
}

/** Parses the record of a move; undefined without one. */
export function parseMoveState(text: string | undefined): MoveState | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as MoveState);
}

/** The message for operators about a store that a move has made unusable, in one line with what to do. */
export function moveNotice(store: string, { kind, other }: MoveState): string {
  switch (kind) {
    case 'unfinished':
      return (
        `${store} has an unfinished migration from ${other}: run the same \`collab migrate\` again to finish it, ` +
        'or remove this store'
      );
    case 'moving':
      return (
        `${store} is being moved to ${other}, or that was interrupted: run the same \`collab migrate\` again to ` +
        'finish it, or go on here with `collab migrate --undo`'
      );
    case 'moved':
      return (
        `${store} was moved to ${other}: start Collab with the configuration of that, or go back to the data as it was ` +
        'with `collab migrate --undo`'
      );
  }
}

/** The message to a client that sends a change during a move, or after it. */
export function movedRefusal(): CollabError {
  return new CollabError(
    'store_moving',
    'The data of this server is being moved to another store: nothing was written, try again in a moment',
  );
}
