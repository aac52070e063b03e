/** The message of anything thrown: errors have one, of other values it is their text. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The first line of the message of anything thrown. */
export function firstLine(thrown: unknown): string {
  const text = messageOf(thrown);
  return text.split('\n')[0] ?? text;
}
