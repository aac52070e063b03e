import { isUtf8 } from 'node:buffer';
import { formatValue } from '../../lib/format-value.ts';
import { parseJson } from '../../domain/input/json.ts';
import { CollabError } from '../../model/errors.ts';

/**
 * Parses a JSON body. Throws `invalid_content_type` unless the Content-Type is JSON, and `invalid_json` as `parseJson`
 * does.
 */
export function parseJsonBody(contentType: string, bytes: Buffer): unknown {
  if (!isJson(contentType)) throw wrongContentType('application/json', contentType);
  if (bytes.length === 0) throw new CollabError('invalid_json', 'The body is empty; it must be a JSON object');
  if (!isUtf8(bytes)) throw new CollabError('invalid_json', 'The body must be UTF-8');
  return parseJson(bytes.toString('utf8'), 'The body');
}

/** The refusal of a body of another type. `sent`: the Content-Type, '' for none. */
export function wrongContentType(wanted: string, sent: string): CollabError {
  return new CollabError(
    'invalid_content_type',
    `Content-Type must be ${wanted}, ${sent === '' ? 'but is missing' : `not ${formatValue(sent)}`}`,
  );
}

function isJson(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  const [type = ''] = contentType.split(';', 1);
  return type.trim().toLowerCase() === 'application/json';
}
