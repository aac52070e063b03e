/** A message between the workers that have sockets in a room, on the topic of the room. */
export type PeerMessage =
  /** The membership of a connection was written or deleted in shared memory; null stands for any connection. */
  | { readonly kind: 'changed'; readonly connectionId: string | null }
  /** A frame for all members. */
  | { readonly kind: 'frame'; readonly frame: string }
  /** As `frame`, of the type `typing`. */
  | { readonly kind: 'typing'; readonly frame: string }
  /** A frame for one connection. */
  | { readonly kind: 'direct'; readonly connectionId: string; readonly frame: string };

// Old and new workers exchange messages during a rolling restart, so these letters must not change.
const CHANGED = 'l';
const FRAME = 'a';
const TYPING = 't';
const DIRECT = 'o';

/** Encodes a message as text. */
export function encodePeerMessage(message: PeerMessage): string {
  switch (message.kind) {
    case 'changed':
      return CHANGED + (message.connectionId ?? '');
    case 'frame':
      return FRAME + message.frame;
    case 'typing':
      return TYPING + message.frame;
    case 'direct':
      return `${DIRECT}${message.connectionId} ${message.frame}`;
  }
}

/** Decodes a message; null if its kind is unknown, as it may be from a newer worker. */
export function decodePeerMessage(text: string): PeerMessage | null {
  const rest = text.slice(1);
  switch (text.charAt(0)) {
    case CHANGED:
      return { kind: 'changed', connectionId: rest === '' ? null : rest };
    case FRAME:
      return { kind: 'frame', frame: rest };
    case TYPING:
      return { kind: 'typing', frame: rest };
    case DIRECT: {
      const space = rest.indexOf(' ');
      return { kind: 'direct', connectionId: rest.slice(0, space), frame: rest.slice(space + 1) };
    }
    default:
      return null;
  }
}
