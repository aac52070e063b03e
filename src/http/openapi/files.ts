import type { ErrorCode } from '../../model/errors.ts';
import { acceptedTypes } from '../../model/attachment.ts';
import { pathExamples } from './examples/records.ts';
import { headerRefs, type JsonObject, limitHeaders, refusals, securityOf } from './parts.ts';

/** The refusals of the file server, the only path outside of the API. */
export const fileErrors: readonly ErrorCode[] = [
  'missing_credentials',
  'invalid_key',
  'invalid_token',
  'token_expired',
  'forbidden',
  'environment_disabled',
  'invalid_request',
  'unknown_user',
  'file_not_found',
  'range_not_satisfiable',
  'rate_limited',
  'internal',
];

const header = (name: string, description: string, example: string): JsonObject => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
  example,
});
const segment = (name: string): JsonObject => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string' },
  example: pathExamples[name],
});

const content = Object.fromEntries([...Object.keys(acceptedTypes)].map((type) => [type, {}]));
const headers = { ...limitHeaders, ...headerRefs('ETag') };

/** The path of files. It is not a route of the API: it is outside of its prefix. */
export const filesPath: JsonObject = {
  '/files/{envId}/{fileId}': {
    servers: [{ url: '/', description: 'Outside of /api/v1.' }],
    get: {
      operationId: 'files.get',
      summary: 'Get a file, or its thumbnail',
      description:
        'The `url` and `thumbnailUrl` of an attachment lead here: outside of /api/v1, at the root of the ' +
        'server. The environment of the credentials must be that of the path. Files never change and are sent ' +
        'with `Cache-Control: public, max-age=31536000, immutable`. Counted separately from other requests, ' +
        '600 per minute.',
      tags: ['files'],
      ...securityOf.either,
      parameters: [
        segment('envId'),
        segment('fileId'),
        {
          name: 'thumb',
          in: 'query',
          required: false,
          description: 'The thumbnail of an image: a JPEG of 200x200 pixels.',
          schema: { const: '1' },
          example: '1',
        },
        {
          name: 'userId',
          in: 'query',
          required: false,
          description: 'With a secret key: the user for whom it gets the file.',
          schema: { type: 'string' },
          example: 'ann',
        },
        header(
          'Range',
          'One range of bytes. For several ranges or a malformed header, the whole file is sent.',
          'bytes=0-1023',
        ),
        header('If-Range', '`Range` applies only if this is the ETag.', '"0f343b0931126a20f133d67c2b018a3b"'),
        header('If-None-Match', 'The response is 304 if this is the ETag.', '"0f343b0931126a20f133d67c2b018a3b"'),
      ],
      responses: {
        200: {
          description: 'The file, with the type that it was uploaded with; a thumbnail is image/jpeg.',
          headers,
          content,
        },
        206: { description: 'The requested bytes.', headers: { ...headers, ...headerRefs('Content-Range') }, content },
        304: { description: 'The client has the current version.', headers },
        ...refusals(fileErrors),
      },
    },
  },
};
