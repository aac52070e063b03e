import { RE2JS, RE2Set } from 're2js';
import type { Rule } from './config.ts';
import { clean, fold, isUnspaced, wordsOf } from './normalise.ts';

/** Says what in a text a rule applies to, for moderators; null if it does not apply. */
export type ContentCheck = (text: string) => string | null;

/** The check of a rule about the text alone, which takes time linear in the length of the text. */
export function contentCheck(rule: Extract<Rule, { type: 'words' | 'patterns' | 'links' }>): ContentCheck {
  switch (rule.type) {
    case 'words':
      return wordsCheck(rule.words);
    case 'patterns':
      return patternsCheck(rule.patterns);
    case 'links':
      return linksCheck(rule.max, rule.allow);
  }
}

function wordsCheck(words: readonly string[]): ContentCheck {
  const spaced = words.filter((word) => !isUnspaced(word)).map((word) => ({ word, needle: word.endsWith('*') ? wordsOf(word.slice(0, -1)).trimEnd() : wordsOf(word) }));
  const unspaced = words.filter(isUnspaced).map((word) => ({ word, needle: fold(word.replace(/\*$/, '')) }));
  return (text) => {
    const joined = wordsOf(text);
    const found = spaced.find(({ needle }) => needle.trim() !== '' && joined.includes(needle)) ?? findIn(fold(text), unspaced);
    return found === undefined ? null : `contains “${found.word}”`;
  };
}

function findIn(text: string, entries: readonly { word: string; needle: string }[]): { word: string } | undefined {
  return entries.find(({ needle }) => text.includes(needle));
}

function patternsCheck(patterns: readonly string[]): ContentCheck {
  const set = new RE2Set(RE2Set.UNANCHORED, RE2JS.CASE_INSENSITIVE);
  for (const pattern of patterns) set.add(pattern);
  set.compile();
  return (text) => {
    const [first] = set.match(clean(text));
    return first === undefined ? null : `matches the pattern ${patterns[first]}`;
  };
}

const LINK = RE2JS.compile('(?:\\b[a-z][a-z0-9+.-]{1,20}://|\\bwww\\.)[^\\s<>"\']+|\\b(?:[a-z0-9-]{1,63}\\.)+[a-z]{2,24}/[^\\s<>"\']*', RE2JS.CASE_INSENSITIVE);

function linksCheck(max: number, allow: readonly string[]): ContentCheck {
  const allowed = allow.map((host) => host.toLowerCase());
  return (text) => {
    const matcher = LINK.matcher(clean(text));
    let links = 0;
    while (matcher.find()) {
      const host = hostOf(matcher.group() ?? '');
      if (!allowed.some((name) => host === name || host.endsWith(`.${name}`))) links++;
    }
    return links > max ? `contains ${links} links` : null;
  };
}

/** The host of a link, in lower case; '' if it has none. */
function hostOf(link: string): string {
  const address = link.includes('://') ? link : `https://${link}`;
  return URL.canParse(address) ? new URL(address).hostname : '';
}
