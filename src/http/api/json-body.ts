import { isUtf8 } from 'node:buffer';
import { parseJson } from '../../domain/input/json.ts';
import { CollabError } from '../../model/errors.ts';

/** The value of a JSON body. Throws `invalid_content_type`, or `invalid_json` as `parseJson`. */
export function parseJsonBody(contentType: string, bytes: Buffer): unknown {
  if (!isJson(contentType)) throw new CollabError('invalid_content_type', 'Content-Type must be application/json');
  if (bytes.length === 0) throw new CollabError('invalid_json', 'The body must be a JSON object, and it is empty');
  if (!isUtf8(bytes)) throw new CollabError('invalid_json', 'The body must be UTF-8');
  return parseJson(bytes.toString('utf8'), 'The body');
}

function isJson(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  const [type = ''] = contentType.split(';', 1);
  return type.trim().toLowerCase() === 'application/json';
}
