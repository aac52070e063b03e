import { readSource } from './sources.ts';

/** A command line of a document. */
export interface DocumentLine {
  /** The document, with the number of the line in it. */
  readonly at: string;
  readonly text: string;
}

/** The contents of the blocks of a document that have this language, in their order. */
export function codeBlocks(path: string, language: string): string[] {
  const pattern = new RegExp(`^( *)\`\`\`${language}\\n([^]*?)^ *\`\`\`$`, 'gm');
  return [...readSource(path).matchAll(pattern)].map(([, indent = '', content = '']) => content.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

/**
 * The comment of a line of a shell script; undefined if it has none. An interactive zsh takes it for arguments, and one
 * with an apostrophe or a parenthesis is a syntax error.
 */
export function commentOf(line: string): string | undefined {
  const unquoted = line.replaceAll(/'[^']*'|"(?:[^"\\]|\\.)*"/g, (text) => '_'.repeat(text.length));
  const at = unquoted.search(/(?:^|\s)#/);
  return at < 0 ? undefined : line.slice(at).trim();
}
