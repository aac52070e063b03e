import { basename, relative } from 'node:path';
import type { Failure } from '../failure.ts';

/** Writes a line, or several, to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Writes to standard error, for what is not the command's result. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Prints the result of a command: one JSON document for scripts, or what `human` gives for people. */
export function printResult(json: boolean, value: unknown, human: () => string): void {
  print(json ? JSON.stringify(value) : human());
}

/** Rows under headings, in columns as wide as their widest cell. Texts come out printable. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(printable))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()).join('\n');
}

/** Names and values, one a line, the values under each other. */
export function facts(pairs: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`).join('\n');
}

/** What to do next, as lines under the result; commands of ours as they can be called here. */
export function next(...lines: readonly string[]): string {
  return `\nNext:\n${lines.map((line) => `  ${callable(line)}`).join('\n')}`;
}

/** A text as one word of a shell: in quotes where it needs them. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A command line that begins with `collab`, in the way this process was called: the program need not be installed. */
export function callable(line: string): string {
  return line.replace(/^collab /, `${caller(process.argv[1] ?? '')} `);
}

function caller(script: string): string {
  if (script.includes('/node_modules/.bin/')) return 'npx collab';
  return basename(script) === 'collab' ? 'collab' : `node ${relative('', script)}`;
}

/** A text without the control characters that could steer a terminal: what users write is shown as it is, harmless. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '·');
}

/** A failure as standard error shows it: what happened, then what to do. */
export function renderFailure(failure: Failure): string {
  const todo = failure.remedies.map((remedy) => `  → ${remedy}`);
  return [`collab: ${failure.message}`, ...todo].join('\n');
}
