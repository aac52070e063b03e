import { CollabError } from '../errors.ts';

/** What the server does with Yjs documents, which it holds as updates (encoding 1) and never as objects. */
export interface Crdt {
  /**
   * The document that has what both have. Whatever trails a valid update is dropped.
   * Throws `invalid_request` when the update, or what is stored, is none.
   *
   * @param stored null for no document yet
   */
  merge(stored: Uint8Array | null, update: Uint8Array): Uint8Array;
  /** What a document has that one with this state vector lacks. Throws `invalid_request` when one of them is not what it should be. */
  diff(stored: Uint8Array, stateVector: Uint8Array): Uint8Array;
  /** The same document without what merging has left over, such as the content of what was deleted. */
  compact(stored: Uint8Array): Uint8Array;
}

const BLANK = new Uint8Array([0, 0]);

let loading: Promise<Crdt> | null = null;

/** Loads Yjs, once: most servers never need it. */
export function loadYjs(): Promise<Crdt> {
  loading ??= yjs();
  return loading;
}

async function yjs(): Promise<Crdt> {
  const { applyUpdate, diffUpdate, Doc, encodeStateAsUpdate, mergeUpdates } = await import('yjs');
  const merged = (stored: Uint8Array, update: Uint8Array): Uint8Array | null => attempt(() => mergeUpdates([stored, update]));
  return {
    merge: (stored, update) => {
      const result = merged(stored ?? BLANK, update);
      if (result !== null) return result;
      throw merged(BLANK, update) === null ? invalid('The state must be a Yjs update (encoding 1), which it is not') : notStored();
    },
    diff: (stored, stateVector) => {
      const result = attempt(() => diffUpdate(stored, stateVector));
      if (result !== null) return result;
      throw merged(BLANK, stored) === null ? notStored() : invalid('sv must be a Yjs state vector as base64url');
    },
    compact: (stored) => {
      const compacted = attempt(() => {
        const document = new Doc();
        applyUpdate(document, stored);
        const update = encodeStateAsUpdate(document);
        document.destroy();
        return update;
      });
      // What can be merged can nearly always be loaded; where it can't, it is at least kept.
      return compacted ?? stored;
    },
  };
}

/** Null for whatever Yjs throws at bytes that are no update: errors of many kinds, none of its own. */
function attempt(work: () => Uint8Array): Uint8Array | null {
  try {
    return work();
  } catch {
    return null;
  }
}

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

function notStored(): CollabError {
  return invalid('What is stored for this room is no Yjs document: clear it, or replace it without merge=yjs');
}
