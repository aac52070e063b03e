/** The line that says why the server does not run on the native core. */
export function coreLine(reason: string): string {
  return `core: node, which is slower than uWebSockets.js (${reason})`;
}
