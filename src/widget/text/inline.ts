import { nameAt } from './name-at.ts';

/** A piece of a line. */
export type Inline =
  | { readonly kind: 'text' | 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis' | 'deleted'; readonly content: readonly Inline[] }
  | { readonly kind: 'link'; readonly href: string; readonly content: readonly Inline[] }
  | { readonly kind: 'mention'; readonly userId: string; readonly text: string };

const MARKS: readonly (readonly [kind: 'strong' | 'emphasis' | 'deleted', mark: string])[] = [
  ['strong', '**'],
  ['deleted', '~~'],
  ['emphasis', '*'],
  ['emphasis', '_'],
];

/** Marks nest this deep at most; deeper ones are shown as they were typed. */
const MAX_DEPTH = 4;
/**
 * A mark, a link text and a link end within this many characters, or are no such thing. It bounds the work of hostile
 * text.
 */
const MAX_SPAN = 1_000;

const ADDRESS = /https?:\/\/[^\s<>"`]{1,2000}/y;

/** Parses one line: bold, italic, struck out, code, links, bare web addresses and mentions. Everything else is text. */
export function parseInline(line: string, names: ReadonlyMap<string, string>, depth = 0): Inline[] {
  const found: Inline[] = [];
  let plain = '';
  let at = 0;
  while (at < line.length) {
    const match = SPECIAL.test(line[at] ?? '') ? special(line, at, names, depth) : null;
    if (match === null) {
      plain += line[at];
      at += 1;
      continue;
    }
    if (plain !== '') found.push({ kind: 'text', text: plain });
    plain = '';
    found.push(match.inline);
    at = match.end;
  }
  if (plain !== '') found.push({ kind: 'text', text: plain });
  return found;
}

const SPECIAL = /[`*_~[@h]/;

interface Match {
  readonly inline: Inline;
  /** The index after it. */
  readonly end: number;
}

function special(line: string, at: number, names: ReadonlyMap<string, string>, depth: number): Match | null {
  switch (line[at]) {
    case '`':
      return code(line, at);
    case '@':
      return mention(line, at, names);
    case '[':
      return depth < MAX_DEPTH ? link(line, at, names, depth) : null;
    case 'h':
      return isWordBefore(line, at) ? null : address(line, at);
    default:
      return depth < MAX_DEPTH ? marked(line, at, names, depth) : null;
  }
}

function code(line: string, at: number): Match | null {
  const end = indexWithin(line, '`', at + 1);
  return end <= at + 1 ? null : { inline: { kind: 'code', text: line.slice(at + 1, end) }, end: end + 1 };
}

function mention(line: string, at: number, names: ReadonlyMap<string, string>): Match | null {
  const found = nameAt(line, at, [...names].flat());
  if (found === null) return null;
  const [userId, name] = [...names].find((entry) => entry[1] === found) ?? [found, names.get(found) ?? found];
  return { inline: { kind: 'mention', userId, text: name }, end: at + 1 + found.length };
}

function link(line: string, at: number, names: ReadonlyMap<string, string>, depth: number): Match | null {
  const middle = indexWithin(line, '](', at + 1);
  const end = middle < 0 ? -1 : indexWithin(line, ')', middle);
  if (end < 0 || middle === at + 1) return null;
  const href = safeAddress(line.slice(middle + 2, end).trim());
  return href === null
    ? null
    : {
        inline: { kind: 'link', href, content: parseInline(line.slice(at + 1, middle), names, depth + 1) },
        end: end + 1,
      };
}

function address(line: string, at: number): Match | null {
  ADDRESS.lastIndex = at;
  const found = ADDRESS.exec(line)?.[0];
  if (found === undefined) return null;
  // Punctuation behind an address belongs to the sentence.
  const text = found.replace(/[.,;:!?)\]'"*_~]{1,20}$/, '');
  const href = safeAddress(text);
  return href === null
    ? null
    : { inline: { kind: 'link', href, content: [{ kind: 'text', text }] }, end: at + text.length };
}

function marked(line: string, at: number, names: ReadonlyMap<string, string>, depth: number): Match | null {
  for (const [kind, mark] of MARKS) {
    if (!line.startsWith(mark, at)) continue;
    const start = at + mark.length;
    if (mark === '_' && isWordBefore(line, at)) return null;
    if (line[start] === undefined || line[start] === ' ') return null;
    const end = indexWithin(line, mark, start + 1);
    if (end < 0 || line[end - 1] === ' ') return null;
    return { inline: { kind, content: parseInline(line.slice(start, end), names, depth + 1) }, end: end + mark.length };
  }
  return null;
}

/** The address if a link may lead there: http, https and mailto, without user name or password; null otherwise. */
export function safeAddress(text: string): string | null {
  if (!/^(?:https?:\/\/|mailto:)/i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  return url.username === '' && url.password === '' ? url.href : null;
}

function isWordBefore(line: string, at: number): boolean {
  return at > 0 && /[\p{L}\p{N}_]/u.test(line[at - 1] ?? '');
}

function indexWithin(line: string, mark: string, from: number): number {
  const found = line.slice(from, from + MAX_SPAN).indexOf(mark);
  return found < 0 ? -1 : from + found;
}
