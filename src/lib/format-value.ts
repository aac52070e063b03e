import { printable } from './printable.ts';

const MAX_LENGTH = 40;

/**
 * A value that a client sent, as a message may show it: text in quotes, printable and at most 40 characters of it;
 * numbers, booleans and null as in JSON; of arrays and objects only what they are.
 */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

function quoted(text: string): string {
  if (text.length <= MAX_LENGTH) return printable(JSON.stringify(text));
  return `${printable(JSON.stringify(`${text.slice(0, MAX_LENGTH)}…`))} (${text.length} characters)`;
}
