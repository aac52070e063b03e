import { systemErrorOf } from './errno.ts';

/**
 * How Node.js begins the message about an error of the system that it does not know, such as EDQUOT: of asynchronous
 * calls, and of synchronous ones.
 */
const UNKNOWN_ERROR = /^(?:Unknown system error -\d+(?:: Unknown system error -\d+)?|UNKNOWN: unknown error)/;

/**
 * The message of anything thrown: errors have one, of other values it is their text. It names every error of the
 * system.
 */
export function messageOf(thrown: unknown): string {
  const { message } = asError(thrown);
  if (!UNKNOWN_ERROR.test(message)) return message;
  const known = systemErrorOf(thrown);
  return known === null ? message : message.replace(UNKNOWN_ERROR, `${known.name}: ${known.meaning}`);
}

/** The first line of the message of anything thrown. */
export function firstLine(thrown: unknown): string {
  const text = messageOf(thrown);
  return text.split('\n')[0] ?? text;
}

/**
 * Anything thrown as an error: itself if it is one whose name, message and cause can be read. Code that is not ours may
 * throw `undefined`, or an object whose getters throw.
 */
export function asError(thrown: unknown): Error {
  try {
    if (!(thrown instanceof Error)) return new Error(String(thrown));
    const { name, message } = thrown;
    void thrown.cause;
    return typeof name === 'string' && typeof message === 'string' ? thrown : new Error(String(message));
  } catch {
    return new Error('a value without a text was thrown');
  }
}
