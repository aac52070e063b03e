import * as Type from 'typebox';
import type { Static } from 'typebox';
import { LinkTemplateSchema } from '../shared/comment-link.ts';

/** The configuration of the plugin in an environment. */
export const ConfigSchema = Type.Object({
  subject: Type.String({
    pattern: '^(mailto:|https://)',
    maxLength: 320,
    description:
      'How push services reach you if your messages cause trouble: `mailto:ops@example.com` or an https URL.',
  }),
  linkTemplate: LinkTemplateSchema,
});
export type Config = Static<typeof ConfigSchema>;
