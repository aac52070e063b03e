import type { Attachment } from '../../model/attachment.ts';

/** The path of a file on the server. Records and events contain it in place of a URL. */
export function filePath(environmentId: string, fileId: string): string {
  return `/files/${environmentId}/${fileId}`;
}

/** An attachment whose URLs begin with `baseUrl`, which has no trailing slash; '' leaves them as paths. */
export function withBaseUrl(attachment: Attachment, baseUrl: string): Attachment {
  const { url, thumbnailUrl } = attachment;
  const thumbnail = thumbnailUrl === undefined ? {} : { thumbnailUrl: absolute(thumbnailUrl, baseUrl) };
  return { ...attachment, url: absolute(url, baseUrl), ...thumbnail };
}

/**
 * The start of the attachments of a comment in JSON that the server generates. A client cannot put this text into a
 * comment, thread or event: quotes in strings are escaped, and metadata contain no arrays.
 */
const ATTACHMENTS_START = '"attachments":[{';
/** One attachment, from its opening brace. Only numbers follow its URLs. */
const ATTACHMENT = /\{[^]*?"url":"[^}]*\},?/y;
const URLS = /"(url|thumbnailUrl)":"((?:[^"\\]|\\.)*)"/g;

/** Whether JSON text of comments, threads or events contains an attachment. */
export function containsFileUrls(text: string): boolean {
  // Most texts have no array of objects, which takes less time to find out.
  return text.includes('[{') && text.includes(ATTACHMENTS_START);
}

/**
 * JSON text of comments, threads or events in which the URLs of all attachments begin with `baseUrl`, which has no
 * trailing slash; '' changes nothing. Earlier versions stored whole URLs: their addresses are replaced.
 */
export function withFileUrls(text: string, baseUrl: string): string {
  if (baseUrl === '') return text;
  const base = JSON.stringify(baseUrl).slice(1, -1);
  const parts: string[] = [];
  let copied = 0;
  for (
    let at = text.indexOf(ATTACHMENTS_START);
    at >= 0;
    at = text.indexOf(ATTACHMENTS_START, Math.max(copied, at + 1))
  ) {
    ATTACHMENT.lastIndex = at + ATTACHMENTS_START.length - 1;
    for (let found = ATTACHMENT.exec(text); found !== null; found = ATTACHMENT.exec(text)) {
      const [attachment] = found;
      const rewritten = attachment.replaceAll(
        URLS,
        (_, name: string, url: string) => `"${name}":"${absolute(url, base)}"`,
      );
      parts.push(text.slice(copied, found.index), rewritten);
      copied = found.index + attachment.length;
      ATTACHMENT.lastIndex = copied;
    }
  }
  return parts.length === 0 ? text : parts.join('') + text.slice(copied);
}

function absolute(url: string, baseUrl: string): string {
  const path = url.lastIndexOf('/files/');
  return path < 0 ? url : baseUrl + url.slice(path);
}
