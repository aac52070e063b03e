import { RE2JS, RE2Set } from 're2js';
import type { Rule } from './config.ts';
import { type ComparedText, lastResult } from './normalise.ts';
import { WordIndex } from './word-index.ts';

/** A rule about the text alone. */
type ContentRule = Extract<Rule, { type: 'words' | 'patterns' | 'links' }>;

/** Says what in a text a rule applies to, for moderators; null if it does not apply. */
export type ContentCheck = (text: ComparedText) => string | null;

/**
 * Makes the checks of the rules of one configuration. They take time linear in the length of the text, and what several
 * rules need is found once for all of them.
 */
export class ContentChecks {
  readonly #words = new WordIndex();
  readonly #patterns = new PatternIndex();
  readonly #links = lastResult(hostsOf);

  /** The check of a rule. `number` identifies it among those of the configuration. */
  add(rule: ContentRule, number: number): ContentCheck {
    switch (rule.type) {
      case 'words':
        this.#words.add(number, rule.words);
        return (text) => describe('contains “', this.#words.find(text).get(number), '”');
      case 'patterns':
        this.#patterns.add(number, rule.patterns);
        return (text) => describe('matches the pattern ', this.#patterns.find(text).get(number), '');
      case 'links':
        return linksCheck(rule.max, rule.allow, this.#links);
    }
  }
}

function describe(before: string, found: string | undefined, after: string): string | null {
  return found === undefined ? null : `${before}${found}${after}`;
}

/** The patterns of all rules, as one automaton, so that a text is read once for all of them. */
class PatternIndex {
  readonly #patterns: { readonly rule: number; readonly pattern: string }[] = [];
  #set: RE2Set | null = null;
  readonly find: (text: ComparedText) => ReadonlyMap<number, string> = lastResult((text) => this.#match(text));

  /** Adds the patterns of a rule, before the first text. */
  add(rule: number, patterns: readonly string[]): void {
    for (const pattern of patterns) this.#patterns.push({ rule, pattern });
  }

  /** The first pattern of each rule that matches, by rule. */
  #match({ clean }: ComparedText): ReadonlyMap<number, string> {
    this.#set ??= compiled(this.#patterns.map(({ pattern }) => pattern));
    const found = new Map<number, string>();
    for (const index of this.#set.match(clean).toSorted((a, b) => a - b)) {
      const entry = this.#patterns[index];
      if (entry !== undefined && !found.has(entry.rule)) found.set(entry.rule, entry.pattern);
    }
    return found;
  }
}

function compiled(patterns: readonly string[]): RE2Set {
  const set = new RE2Set(RE2Set.UNANCHORED, RE2JS.CASE_INSENSITIVE);
  for (const pattern of patterns) set.add(pattern);
  set.compile();
  return set;
}

/** Labels and schemes of any length: each bound would be as many states of the automaton. */
const LINK = RE2JS.compile(
  '(?:\\b[a-z][a-z0-9+.-]+://|\\bwww\\.)[^\\s<>"\']+|\\b(?:[a-z0-9-]+\\.)+[a-z][a-z]+/[^\\s<>"\']*',
  RE2JS.CASE_INSENSITIVE,
);
const MAX_HOST_LENGTH = 253;

function linksCheck(
  max: number,
  allow: readonly string[],
  find: (text: ComparedText) => ReadonlyMap<string, number>,
): ContentCheck {
  const allowed = new Set(allow.map((host) => host.toLowerCase()));
  return (text) => {
    let links = 0;
    for (const [host, count] of find(text)) if (!isAllowed(host, allowed)) links += count;
    return links > max ? `contains ${links} links` : null;
  };
}

/** Whether a host, or a domain that it is in, is in the set. */
function isAllowed(host: string, allowed: ReadonlySet<string>): boolean {
  if (host.length > MAX_HOST_LENGTH) return false;
  for (let domain = host; ; domain = domain.slice(domain.indexOf('.') + 1)) {
    if (allowed.has(domain)) return true;
    if (!domain.includes('.')) return false;
  }
}

/** The hosts of the links in a text, and how many links each has. */
function hostsOf({ clean }: ComparedText): ReadonlyMap<string, number> {
  const hosts = new Map<string, number>();
  const matcher = LINK.matcher(clean);
  while (matcher.find()) {
    const host = hostOf(matcher.group() ?? '');
    hosts.set(host, (hosts.get(host) ?? 0) + 1);
  }
  return hosts;
}

/** The host of a link, in lower case; '' if it has none. */
function hostOf(link: string): string {
  const address = link.includes('://') ? link : `https://${link}`;
  return URL.canParse(address) ? new URL(address).hostname : '';
}
