import type { RequestHead } from '../../net/request-head.ts';

/** The ETags of a header as written, or `*` for any; null if the header was not sent. */
type EtagList = readonly string[] | '*' | null;

/** Whether a representation with this ETag has to be sent, because `If-None-Match` does not name it. */
export function isModified({ ifNoneMatch }: RequestHead, etag: string): boolean {
  return !names(parseEtags(ifNoneMatch), etag, true, withoutWeakness);
}

/**
 * Whether a write may replace the representation with this ETag: `If-Match` names it and `If-None-Match` does not.
 *
 * @param exists whether there is a representation to replace
 */
export function preconditionHolds({ ifMatch, ifNoneMatch }: RequestHead, etag: string, exists: boolean): boolean {
  const required = parseEtags(ifMatch);
  if (required !== null && !names(required, etag, exists, (tag) => tag)) return false;
  return !names(parseEtags(ifNoneMatch), etag, exists, withoutWeakness);
}

function parseEtags(header: string): EtagList {
  const text = header.trim();
  if (text === '') return null;
  return text === '*' ? '*' : [...text.matchAll(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g)].map(([tag]) => tag);
}

/** Whether a list names an ETag. `normalise` is applied to both sides of each comparison. */
function names(tags: EtagList, etag: string, exists: boolean, normalise: (tag: string) => string): boolean {
  if (tags === null) return false;
  return tags === '*' ? exists : tags.some((tag) => normalise(tag) === normalise(etag));
}

const withoutWeakness = (tag: string): string => tag.replace(/^W\//, '');
