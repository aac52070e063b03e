import { ComparedText, isUnspaced, lastResult } from './normalise.ts';

/** A position in the words of all rules: what may follow, and the words that end here. */
interface Node {
  readonly next: Map<string, Node>;
  readonly ends: { readonly rule: number; readonly order: number; readonly word: string }[];
}

/** The words of all rules, in trees of characters, so that a text is searched once for all of them. */
export class WordIndex {
  /** Those that begin at the beginning of a word. */
  readonly #spaced: Node = newNode();
  /** Those of scripts without spaces, which begin anywhere. */
  readonly #unspaced: Node = newNode();
  /**
   * The first word of each rule that a text contains, by rule. Takes time linear in the text, times the longest word.
   */
  readonly find: (text: ComparedText) => ReadonlyMap<number, string> = lastResult((text) => this.#search(text));

  /** Adds the words of a rule. */
  add(rule: number, words: readonly string[]): void {
    for (const [order, word] of words.entries()) {
      const entry = { rule, order, word };
      if (isUnspaced(word)) insert(this.#unspaced, new ComparedText(word.replace(/\*$/, '')).folded, entry);
      else if (word.endsWith('*')) insert(this.#spaced, new ComparedText(word.slice(0, -1)).words.trimEnd(), entry);
      else insert(this.#spaced, new ComparedText(word).words, entry);
    }
  }

  #search(text: ComparedText): ReadonlyMap<number, string> {
    const found = new Map<number, Node['ends'][number]>();
    const { words } = text;
    for (let at = 0; at >= 0 && at < words.length; at = words.indexOf(' ', at + 1))
      walk(this.#spaced, words, at, found);
    if (this.#unspaced.next.size > 0)
      for (let at = 0; at < text.folded.length; at++) walk(this.#unspaced, text.folded, at, found);
    return new Map([...found].map(([rule, { word }]) => [rule, word]));
  }
}

/** Adds to `found` what ends on the path of a text from `at` on, if it comes before what was found of its rule. */
function walk(root: Node, text: string, at: number, found: Map<number, Node['ends'][number]>): void {
  let node = root.next.get(text.charAt(at));
  for (let next = at + 1; node !== undefined; next++) {
    for (const end of node.ends) if (end.order < (found.get(end.rule)?.order ?? Infinity)) found.set(end.rule, end);
    node = node.next.get(text.charAt(next));
  }
}

function insert(root: Node, needle: string, entry: Node['ends'][number]): void {
  if (needle.trim() === '') return;
  let node = root;
  for (let i = 0; i < needle.length; i++) {
    let next = node.next.get(needle.charAt(i));
    if (next === undefined) node.next.set(needle.charAt(i), (next = newNode()));
    node = next;
  }
  node.ends.push(entry);
}

function newNode(): Node {
  return { next: new Map(), ends: [] };
}
