import {
  applyUpdate,
  diffUpdate,
  Doc,
  encodeStateAsUpdate,
  mergeUpdates,
  mergeUpdatesV2,
  UpdateDecoderV1,
  UpdateEncoderV1,
} from 'yjs';
import type { CrdtFault } from '../../ports/crdt.ts';

/** An operation, as it is sent to the thread. */
export type DocumentOperation =
  | { readonly kind: 'merge'; readonly stored: Uint8Array | null; readonly update: Uint8Array }
  | { readonly kind: 'diff'; readonly stored: Uint8Array; readonly stateVector: Uint8Array }
  | { readonly kind: 'compact'; readonly stored: Uint8Array };

const EMPTY_DOCUMENT = new Uint8Array([0, 0]);

/** Runs an operation without any limit. Never throws. */
export function runOperation(operation: DocumentOperation): Uint8Array | CrdtFault {
  if (operation.kind === 'merge') return merge(operation.stored ?? EMPTY_DOCUMENT, operation.update);
  if (operation.kind === 'diff') return diff(operation.stored, operation.stateVector);
  return attempt(() => compact(operation.stored)) ?? 'stored';
}

function merge(stored: Uint8Array, update: Uint8Array): Uint8Array | CrdtFault {
  const merged = (first: Uint8Array): Uint8Array | null => attempt(() => mergeWhole(first, update));
  return merged(stored) ?? (merged(EMPTY_DOCUMENT) === null ? 'update' : 'stored');
}

/**
 * The decoders of the merge that runs. One class for all merges: a new one each time would be a new type to the
 * compiler of V8.
 */
let decoders: UpdateDecoderV1[] = [];

class NotedDecoder extends UpdateDecoderV1 {
  constructor(...args: ConstructorParameters<typeof UpdateDecoderV1>) {
    super(...args);
    decoders.push(this);
  }
}

/**
 * Merges two updates. Throws if bytes of the second are left over: an update of another encoding may begin with a valid
 * empty one.
 */
function mergeWhole(first: Uint8Array, second: Uint8Array): Uint8Array {
  decoders = [];
  const merged = mergeUpdatesV2([first, second], NotedDecoder, UpdateEncoderV1);
  const rest = decoders[1]?.restDecoder;
  decoders = [];
  if (rest === undefined || rest.pos !== rest.arr.length) throw new Error('bytes follow the update');
  return merged;
}

function diff(stored: Uint8Array, stateVector: Uint8Array): Uint8Array | CrdtFault {
  const result = attempt(() => diffUpdate(stored, stateVector));
  return result ?? (attempt(() => mergeUpdates([EMPTY_DOCUMENT, stored])) === null ? 'stored' : 'vector');
}

function compact(stored: Uint8Array): Uint8Array {
  const document = new Doc();
  applyUpdate(document, stored);
  const update = encodeStateAsUpdate(document);
  document.destroy();
  return update;
}

/** Returns null if Yjs throws, which it does with errors of many kinds for bytes that are no update. */
function attempt(operation: () => Uint8Array): Uint8Array | null {
  try {
    return operation();
  } catch {
    return null;
  }
}
