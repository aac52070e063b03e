import { basename, relative } from 'node:path';
import { printable } from '../../lib/printable.ts';
import { shellWord } from '../../lib/shell-word.ts';
import type { Failure } from '../failure.ts';
import { givenFolder } from '../shared/given-folder.ts';

/** The characters of a text in a table. */
const EXCERPT = 60;

/** Writes one or more lines to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Writes one or more lines to standard error: for everything that is not the result of the command. */
export function printNote(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Prints the result of a command: `value` as one JSON document, or the text that `human` returns. */
export function printResult(json: boolean, value: unknown, human: () => string): void {
  print(json ? JSON.stringify(value) : human());
}

/** Formats rows under headings, in aligned columns. Replaces unprintable characters. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(printable))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Formats names and values, one pair per line, with aligned values. Replaces unprintable characters. */
export function keyValues(pairs: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`).join('\n');
}

/**
 * Formats the next steps, to follow a result. `collab` commands are shown as they can be called here, on the same
 * folder.
 */
export function nextSteps(...lines: readonly string[]): string {
  return `\nNext:\n${lines.map((line) => `  ${toInvokedCommand(line)}`).join('\n')}`;
}

/** The beginning of a text, for a table. */
export function excerpt(text: string): string {
  return text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text;
}

/**
 * Replaces `collab` at the start of a command line by the way this process was called, because it may not be installed,
 * and adds the folder that was given with --dir. Other lines are returned as they are.
 */
export function toInvokedCommand(line: string): string {
  if (!line.startsWith('collab ')) return line;
  return `${programName(process.argv[1] ?? '')}${onSameFolder(line).slice('collab'.length)}`;
}

/**
 * Adds the folder that was given with --dir to each command in a text that tells the operator what to do. Commands are
 * in backticks (`collab doctor`); nothing else changes. Not for texts that contain input, or name a command without
 * asking for it.
 */
export function withDirOption(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 && part.startsWith('collab ') ? onSameFolder(part) : part))
    .join('`');
}

/** Adds the folder that was given with --dir to a command line, unless it names one or needs none. */
function onSameFolder(line: string): string {
  const folder = givenFolder(process.argv.slice(2));
  return folder === undefined || / --(?:dir|help)\b/.test(line) ? line : `${line} --dir ${shellWord(folder)}`;
}

function programName(script: string): string {
  const spec = process.env['npm_config_package'];
  // npx has installed it for this call only: `npx collab` alone would look for a package of that name.
  if (script.includes('/_npx/') && spec !== undefined) return `npx --package ${shellWord(spec)} collab`;
  if (script.includes('/node_modules/.bin/')) return 'npx collab';
  return basename(script) === 'collab' ? 'collab' : `node ${relative('', script)}`;
}

/** Formats a failure as one JSON document in a line, for callers that asked for JSON. */
export function failureJson({ code, message, remedies }: Failure): string {
  return JSON.stringify({ error: { code, message, remedies: remedies.map(withDirOption) } });
}

/** Formats a failure: what happened, then what to do. */
export function renderFailure(failure: Failure): string {
  const remedies = failure.remedies.map((remedy) => `  → ${withDirOption(remedy)}`);
  return [`collab: ${failure.message}`, ...remedies].join('\n');
}
