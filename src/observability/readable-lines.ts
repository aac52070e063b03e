import { printable } from '../lib/printable.ts';

/** Fields that every line has, or that are shown at their own place. */
const SHOWN: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'worker', 'msg', 'err']);
/** The colours of levels, as codes of ECMA-48. */
const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, warn: 33, error: 31, fatal: 31 };
const LEVEL_WIDTH = 5;
const WORKER_WIDTH = 10;

/**
 * Rewrites a line of the log (one JSON object) for a person: time of day (UTC), level, process, message, then the other
 * fields as `name=value`. The stack of an error follows in lines of its own. Control characters are replaced. A line
 * that is not JSON is returned as it is.
 *
 * @param colour whether to colour warnings and errors
 */
export function readableLine(line: string, colour: boolean): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return line;
  }
  const level = String(entry['level']);
  const fields = Object.entries(entry).filter(([name]) => !SHOWN.has(name));
  const head =
    `${String(entry['time']).slice(11, 23)} ` +
    `${painted(level.toUpperCase().padEnd(LEVEL_WIDTH), colour ? COLOURS[level] : undefined)} ` +
    `${text(entry['worker']).padEnd(WORKER_WIDTH)}`;
  const parts = [head, text(entry['msg'] ?? ''), ...fields.map(([name, value]) => `${printable(name)}=${text(value)}`)];
  return `${parts.filter((part) => part !== '').join(' ')}\n${stackOf(entry['err'])}`;
}

function stackOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return error === undefined ? '' : `  ${text(error)}\n`;
  const { stack } = error as { stack?: unknown };
  const lines = typeof stack === 'string' ? stack : JSON.stringify(error);
  return lines
    .split('\n')
    .map((each) => `  ${printable(each)}\n`)
    .join('');
}

/** A value in a line: texts of one word as they are, everything else as JSON. */
function text(value: unknown): string {
  return printable(typeof value === 'string' && !/[\n"=]/.test(value) ? value : (JSON.stringify(value) ?? ''));
}

function painted(word: string, code: number | undefined): string {
  return code === undefined ? word : `\u001b[${code}m${word}\u001b[0m`;
}
