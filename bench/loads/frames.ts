/** The position of a reader in a stream of WebSocket frames: an incomplete head, and the rest of a payload. */
export interface FrameState {
  /** The start of a frame whose head was cut off at the end of a chunk; null otherwise. */
  carry: Buffer | null;
  /** Bytes of payload still to skip. */
  skip: number;
}

/** Identifies `{"type":"comment.c` in a text frame by its 10th and 18th byte, without parsing. */
const markerEnd = 18;
const letterC = 0x63;

/** The longest head, plus the part of the payload with these bytes. */
const longestLook = 10 + markerEnd;

/** Receives the frames. */
export interface FrameVisitor {
  /** A text frame; `marked` when it is an event `comment.created`. */
  onText(marked: boolean): void;
  /** A ping; the pings of the measured servers are empty. */
  onPing(): void;
  /** A close frame, with its code and the received part of its reason. */
  onClose(code: number, reason: string): void;
}

/**
 * Reads the frames in a chunk. Of an event it reads only two bytes, so that counting costs the load little. The frames
 * of all measured servers are unmasked and unfragmented.
 */
export function walkFrames(state: FrameState, incoming: Buffer, visitor: FrameVisitor): void {
  let chunk = incoming;
  if (state.carry !== null) {
    chunk = Buffer.concat([state.carry, incoming]);
    state.carry = null;
  }
  let at = state.skip;
  while (at < chunk.length) {
    const left = chunk.length - at;
    const short = left < 2 ? 127 : chunk[at + 1]! & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (left < longestLook && (left < head || left < head + Math.min(markerEnd, payloadLength(chunk, at, short)))) {
      state.carry = Buffer.from(chunk.subarray(at));
      state.skip = 0;
      return;
    }
    const length = payloadLength(chunk, at, short);
    const payload = at + head;
    const opcode = chunk[at]! & 0x0f;
    if (opcode === 1)
      visitor.onText(length >= markerEnd && chunk[payload + 9] === letterC && chunk[payload + 17] === letterC);
    if (opcode === 9) visitor.onPing();
    if (opcode === 8 && length >= 2)
      visitor.onClose(chunk.readUInt16BE(payload), chunk.toString('utf8', payload + 2, payload + length));
    at = payload + length;
  }
  state.skip = at - chunk.length;
}

function payloadLength(chunk: Buffer, at: number, short: number): number {
  if (short < 126) return short;
  return short === 126 ? chunk.readUInt16BE(at + 2) : Number(chunk.readBigUInt64BE(at + 2));
}
