import { projectFiles, readSource } from './sources.ts';

/** A piece of code of a document. */
export interface DocumentCode {
  /** The document, with the number of the line in it. */
  readonly at: string;
  readonly text: string;
}

/** A block of code: what its fence names, such as `sh`, and its text without the indent of the fence. */
export interface CodeBlock extends DocumentCode {
  readonly language: string;
}

const BLOCK = /^( *)```([^\n`]*)\n([^]*?)^ *```$/gm;

/**
 * The documents that say what is true now: not the decisions and the changelog, which say what was decided and changed.
 */
export const documents: readonly string[] = projectFiles().filter(
  (path) => path.endsWith('.md') && !/^(?:docs\/decisions|bench\/peers)\/|^CHANGELOG/.test(path),
);

/** The blocks of code of a document, in their order. */
export function blocksOf(path: string): CodeBlock[] {
  const source = readSource(path);
  return [...source.matchAll(BLOCK)].map(({ 1: indent = '', 2: language = '', 3: text = '', index }) => ({
    at: place(path, source, index),
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

/** The code within the lines of a document, outside of its blocks. A bar of a table is unescaped. */
export function inlineCode(path: string): DocumentCode[] {
  const source = readSource(path).replaceAll(BLOCK, (block) => block.replaceAll(/[^\n]/g, ' '));
  return [...source.matchAll(/`([^`\n]+)`/g)].map(({ 1: text = '', index }) => ({
    at: place(path, source, index),
    text: text.replaceAll('\\|', '|'),
  }));
}

function place(path: string, source: string, index: number): string {
  return `${path}:${source.slice(0, index).split('\n').length}`;
}

/** The contents of the blocks of a document that have this language, in their order. */
export function codeBlocks(path: string, language: string): string[] {
  return blocksOf(path)
    .filter((block) => block.language === language)
    .map(({ text }) => text);
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
