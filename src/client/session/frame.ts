import type { ServerFrame } from '../../model/frames.ts';

/** A frame of the server; null for anything else, such as what a proxy sends. */
export function readFrame(text: string): ServerFrame | null {
  try {
    const frame = JSON.parse(text) as ServerFrame | null;
    return typeof frame?.type === 'string' ? frame : null;
  } catch {
    return null;
  }
}
