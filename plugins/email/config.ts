import * as Type from 'typebox';
import type { Static } from 'typebox';
import { LinkTemplateSchema } from '../shared/comment-link.ts';

const SmtpSchema = Type.Object(
  {
    host: Type.String({ minLength: 1, description: 'Name or address of the mail server.' }),
    port: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 587,
      description: 'Its port: usually 587 with `starttls`, 465 with `implicit`, 25 with `none`.',
    }),
    tls: Type.Union([Type.Literal('starttls'), Type.Literal('implicit'), Type.Literal('none')], {
      default: 'starttls',
      description:
        '`starttls` encrypts after the greeting and sends nothing otherwise, `implicit` encrypts from the ' +
        'start, `none` never encrypts (for a relay on the same machine).',
    }),
    caFile: Type.Optional(
      Type.String({
        minLength: 1,
        isPath: true,
        description:
          'File with the certificate authority of the mail server (PEM), if it is not a public one. Relative to the folder of config.json.',
      }),
    ),
    user: Type.Optional(
      Type.String({ minLength: 1, description: 'User name; without it there is no authentication.' }),
    ),
    password: Type.Optional(Type.String({ description: 'Password of the user.' })),
  },
  { description: 'The mail server that takes the mail.' },
);

/** The configuration of the plugin in an environment. */
export const ConfigSchema = Type.Object({
  smtp: SmtpSchema,
  from: Type.String({
    pattern: '@',
    maxLength: 320,
    description: 'The sender, such as `Comments <comments@example.com>`.',
  }),
  replyTo: Type.Optional(Type.String({ pattern: '@', maxLength: 320, description: 'Where answers go.' })),
  delayMinutes: Type.Integer({
    minimum: 0,
    maximum: 1_440,
    default: 5,
    description: 'A notification that is unread after this time is mailed, with all others that are unread then.',
  }),
  linkTemplate: LinkTemplateSchema,
  templates: Type.Optional(
    Type.String({
      minLength: 1,
      isPath: true,
      description:
        'Folder with `subject.txt`, `digest.txt` and `digest.html`, each of which replaces a built-in template. Relative to the folder of config.json.',
    }),
  ),
});
export type Config = Static<typeof ConfigSchema>;
