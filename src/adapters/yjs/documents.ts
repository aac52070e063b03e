import { applyUpdate, diffUpdate, Doc, encodeStateAsUpdate, mergeUpdates } from 'yjs';
import type { CrdtFault } from '../../ports/crdt.ts';

/** A piece of work, as it is sent to the thread. */
export type DocumentWork =
  | { readonly kind: 'merge'; readonly stored: Uint8Array | null; readonly update: Uint8Array }
  | { readonly kind: 'diff'; readonly stored: Uint8Array; readonly stateVector: Uint8Array }
  | { readonly kind: 'compact'; readonly stored: Uint8Array };

const BLANK = new Uint8Array([0, 0]);

/** Does a piece of work, for as long as that takes. Never throws. */
export function doDocumentWork(work: DocumentWork): Uint8Array | CrdtFault {
  if (work.kind === 'merge') return merge(work.stored ?? BLANK, work.update);
  if (work.kind === 'diff') return diff(work.stored, work.stateVector);
  return attempt(() => compacted(work.stored)) ?? 'stored';
}

function merge(stored: Uint8Array, update: Uint8Array): Uint8Array | CrdtFault {
  const merged = (first: Uint8Array): Uint8Array | null => attempt(() => mergeUpdates([first, update]));
  return merged(stored) ?? (merged(BLANK) === null ? 'update' : 'stored');
}

function diff(stored: Uint8Array, stateVector: Uint8Array): Uint8Array | CrdtFault {
  const result = attempt(() => diffUpdate(stored, stateVector));
  return result ?? (attempt(() => mergeUpdates([BLANK, stored])) === null ? 'stored' : 'vector');
}

function compacted(stored: Uint8Array): Uint8Array {
  const document = new Doc();
  applyUpdate(document, stored);
  const update = encodeStateAsUpdate(document);
  document.destroy();
  return update;
}

/** Null for whatever Yjs throws at bytes that are no update: errors of many kinds, none of its own. */
function attempt(work: () => Uint8Array): Uint8Array | null {
  try {
    return work();
  } catch {
    return null;
  }
}
