import * as Type from 'typebox';
import { ok, type Route } from '../route.ts';
import { namedSchemas } from '../../openapi/schemas.ts';
import { receiveUpload } from '../upload.ts';

export const uploadRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/upload',
    operationId: 'files.upload',
    summary: 'Upload a file, to be attached to a comment',
    description:
      'Send the `id` of the response in `attachmentIds` when you create or edit a thread or comment. A file ' +
      'that is not linked is removed after 24 hours. ' +
      'Get the file from its `url` with the same two headers. A backend may send a secret key instead, and ' +
      'the user for whom it uploads in `userId`.',
    credential: 'user',
    allowsImpersonation: true,
    query: [
      {
        name: 'userId',
        schema: Type.String({
          description: 'With a secret key: the user for whom it uploads, and whose quotas count.',
        }),
      },
    ],
    access: 'create',
    upload: true,
    responses: { 200: namedSchemas.Attachment },
    errors: [
      'invalid_request',
      'unknown_user',
      'invalid_content_type',
      'unsupported_media',
      'media_disabled',
      'content_rejected',
      'file_too_large',
      'payload_too_large',
    ],
    handle: async (request) => {
      const attachment = await receiveUpload(request);
      return attachment === null ? null : ok(JSON.stringify(attachment));
    },
  },
];
