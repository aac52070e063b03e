import { formatValue } from '../../lib/format-value.ts';
import { CollabError } from '../../model/errors.ts';

/** The headers of a part of a multipart body. */
export interface PartHead {
  /** `name` of its Content-Disposition; '' if absent. */
  readonly name: string;
  /** `filename` of its Content-Disposition; null if absent. */
  readonly filename: string | null;
  /** Its Content-Type; null if absent. */
  readonly contentType: string | null;
}

/**
 * The boundary of a multipart body, from its Content-Type. Throws `invalid_content_type` if that is not
 * multipart/form-data with a boundary of 1 to 70 characters.
 */
export function boundaryOf(contentType: string): string {
  const [, quoted, bare] =
    /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))\s*(?:;.*)?$/i.exec(contentType) ??
    [];
  const boundary = quoted ?? bare;
  if (boundary === undefined)
    throw new CollabError(
      'invalid_content_type',
      'No file provided: send multipart/form-data, with its boundary, and one part named file; the ' +
        `Content-Type is ${contentType === '' ? 'missing' : formatValue(contentType)}`,
    );
  return boundary;
}

/**
 * Parses the headers of a part, without the empty line after them. Throws `invalid_request` if they are not those of
 * form data.
 */
export function parsePartHead(text: string): PartHead {
  let disposition = '';
  let contentType: string | null = null;
  for (const line of text.split('\r\n')) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    if (colon <= 0) throw invalid('A header line of a part has no name');
    const value = line.slice(colon + 1).trim();
    const name = line.slice(0, colon).trim().toLowerCase();
    if (name === 'content-disposition') disposition = value;
    if (name === 'content-type') contentType = value;
    if (name === 'content-transfer-encoding' && !/^(?:binary|8bit|7bit)$/i.test(value))
      throw invalid(`Content-Transfer-Encoding of a part must be binary, not ${formatValue(value)}`);
  }
  if (!/^form-data\s*(?:;|$)/i.test(disposition)) throw invalid('A part has no Content-Disposition: form-data');
  return {
    name: parameter(disposition, 'name') ?? '',
    filename: extendedFilename(disposition) ?? parameter(disposition, 'filename'),
    contentType,
  };
}

/** A parameter of a header value, quoted or bare; null if absent. */
function parameter(value: string, name: string): string | null {
  const [, quoted, bare] = new RegExp(`;\\s*${name}=(?:"((?:\\\\.|[^"\\\\])*)"|([^\\s;"]*))`, 'i').exec(value) ?? [];
  if (quoted === undefined) return bare ?? null;
  // Browsers write %22 for a quote, other clients put a backslash before it; but Windows paths contain backslashes too.
  return quoted.replaceAll('%22', '"').replaceAll('\\"', '"').replaceAll('\\\\', '\\');
}

/** `filename*` (RFC 5987), which some clients send besides or instead of `filename`; null if absent or malformed. */
function extendedFilename(value: string): string | null {
  const [, encoded] = /;\s*filename\*=utf-8'[^']*'([^\s;]*)/i.exec(value) ?? [];
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);
