import type { RequestHead } from '../../net/request-head.ts';

/** The ETags of a header as written, `*` for any; null when the header was not sent. */
type Listed = readonly string[] | '*' | null;

/** Whether a representation with this ETag must be sent: `If-None-Match` doesn't name it. */
export function isModified({ ifNoneMatch }: RequestHead, etag: string): boolean {
  return !names(listed(ifNoneMatch), etag, true, weakly);
}

/** Whether a write may go on over what has this ETag, if it exists: `If-Match` names it, `If-None-Match` doesn't. */
export function preconditionHolds({ ifMatch, ifNoneMatch }: RequestHead, etag: string, exists: boolean): boolean {
  const demanded = listed(ifMatch);
  if (demanded !== null && !names(demanded, etag, exists, (given) => given)) return false;
  return !names(listed(ifNoneMatch), etag, exists, weakly);
}

function listed(header: string): Listed {
  const text = header.trim();
  if (text === '') return null;
  return text === '*' ? '*' : [...text.matchAll(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g)].map(([tag]) => tag);
}

function names(tags: Listed, etag: string, exists: boolean, compared: (tag: string) => string): boolean {
  if (tags === null) return false;
  return tags === '*' ? exists : tags.some((tag) => compared(tag) === compared(etag));
}

const weakly = (tag: string): string => tag.replace(/^W\//, '');
