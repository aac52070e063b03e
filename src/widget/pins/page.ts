import type { Position } from '../../model/thread.ts';
import { linkTo, type Target } from '../core/link.ts';

/** The page of a position: the path of its address, with what routers keep behind `#/`. At most so many characters. */
const MAX_LENGTH = 300;

/** The page at an address; the query is left out, since that may hold what others must not read. */
export function pageAt({ pathname, hash }: { readonly pathname: string; readonly hash: string }): string {
  const route = /^#!?\/[^?]*/.exec(hash)?.[0] ?? '';
  return (pathname + route).slice(0, MAX_LENGTH);
}

/** The page that a thread was pinned to; null if its position does not say it. Anybody may have written that. */
export function pageOf(position: Position | null): string | null {
  try {
    const { page } = JSON.parse(position?.fingerprint ?? '') as { readonly page?: unknown };
    // Only a path of this site: `//host` and `https:` are not, nor what is one of them without the characters that
    // addresses drop.
    return typeof page === 'string' && /^\/(?![/\\])[^\t\n\r]*$/.test(page) ? page : null;
  } catch {
    return null;
  }
}

/** The address of a thread on its page of a site. Where a router has the fragment, it leads to the page alone. */
export function linkOnPage(page: string, site: string, target: Target): string {
  // A document without an address of its own, such as that of `srcdoc`, has no other pages.
  if (!URL.canParse(page, site)) return page;
  const { href, hash } = new URL(page, site);
  return hash === '' ? linkTo(href, target) : href;
}
