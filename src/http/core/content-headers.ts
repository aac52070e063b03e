import { type Header, uncachedJson } from '../../net/response-headers.ts';

// Content type, caching and the other headers that many responses share, each set in one value (see
// net/response-headers.ts).

const NOSNIFF = 'X-Content-Type-Options: nosniff';
/** JSON is compressed for clients that accept it. */
const VARY = 'Vary: Accept-Encoding';

/** JSON that must not be stored. */
export const jsonHead: Header = ['Content-Type', `${uncachedJson[1]}\r\n${VARY}`];

/** A refusal as problem details, which the client has asked for. */
export const problemHead: Header = [
  'Content-Type',
  `application/problem+json\r\nCache-Control: no-store\r\n${NOSNIFF}\r\n${VARY}, Accept`,
];

/** JSON that caches may store if they revalidate it for each use: lists. */
export const listHead: Header = [
  'Content-Type',
  `application/json; charset=utf-8\r\nCache-Control: private, no-cache\r\n${NOSNIFF}\r\n${VARY}`,
];

/** `listHead` with an ETag, which must be one of the server's own. */
export const listHeadWithEtag = (etag: string): Header => ['Content-Type', `${listHead[1]}\r\nETag: ${etag}`];

/** Bytes that caches may store if they revalidate them for each use. */
export const bytesHead: Header = [
  'Content-Type',
  `application/octet-stream\r\nCache-Control: private, no-cache\r\n${NOSNIFF}`,
];

/** Server-sent events. `X-Accel-Buffering` keeps nginx from buffering them. */
export const eventStreamHead: Header = [
  'Content-Type',
  `text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n${NOSNIFF}`,
];
