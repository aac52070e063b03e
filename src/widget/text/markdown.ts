import { parseInline, type Inline } from './inline.ts';

/** One block of a comment. Text is never markup: only what is listed here can be shown. */
export type Block =
  | { readonly kind: 'paragraph' | 'quote'; readonly lines: readonly (readonly Inline[])[] }
  | { readonly kind: 'code'; readonly text: string }
  | {
      readonly kind: 'list';
      readonly ordered: boolean;
      readonly start: number;
      readonly items: readonly (readonly Inline[])[];
    };

const FENCE = /^```[^`]*$/;
const QUOTE = /^> ?(.*)$/;
const BULLET = /^[-*+] +(.*)$/;
const NUMBER = /^(\d{1,9})[.)] +(.*)$/;

/**
 * Parses a comment: paragraphs with line breaks, quotes, lists of one level, code blocks, and the inline marks of
 * `parseInline`. No headings, pictures or HTML. Takes time linear in the length of the text.
 *
 * @param names the names of the mentioned users by id; `@name` is marked as a mention of them
 */
export function parseMarkdown(text: string, names: ReadonlyMap<string, string>): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  const inline = (line: string): Inline[] => parseInline(line, names);
  /** Takes the lines from `from` on that match; returns what the pattern's last group captured in each. */
  const run = (from: number, pattern: RegExp): string[] => {
    const found: string[] = [];
    for (let at = from; at < lines.length; at += 1) {
      const match = pattern.exec(lines[at] ?? '');
      if (match === null) break;
      found.push(match.at(-1) ?? '');
    }
    return found;
  };
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (line.trim() === '') {
      at += 1;
    } else if (FENCE.test(line)) {
      const end = lines.findIndex((other, index) => index > at && FENCE.test(other));
      const last = end < 0 ? lines.length : end;
      blocks.push({ kind: 'code', text: lines.slice(at + 1, last).join('\n') });
      at = last + 1;
    } else if (QUOTE.test(line)) {
      const quoted = run(at, QUOTE);
      blocks.push({ kind: 'quote', lines: quoted.map(inline) });
      at += quoted.length;
    } else if (BULLET.test(line) || NUMBER.test(line)) {
      const ordered = !BULLET.test(line);
      const items = run(at, ordered ? NUMBER : BULLET);
      blocks.push({ kind: 'list', ordered, start: Number(NUMBER.exec(line)?.[1] ?? 1), items: items.map(inline) });
      at += items.length;
    } else {
      const from = at;
      while (at < lines.length && !startsOther(lines[at] ?? '')) at += 1;
      blocks.push({ kind: 'paragraph', lines: lines.slice(from, at).map(inline) });
    }
  }
  return blocks;
}

function startsOther(line: string): boolean {
  return line.trim() === '' || FENCE.test(line) || QUOTE.test(line) || BULLET.test(line) || NUMBER.test(line);
}
