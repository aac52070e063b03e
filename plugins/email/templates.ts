import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import mustache from 'mustache';

/** A notification in a mail. */
export interface DigestItem {
  /** Name of the user who wrote the comment. */
  readonly author: string;
  /** `mentioned you` or `replied`. */
  readonly did: string;
  readonly room: string;
  /** The comment, shortened. */
  readonly text: string;
  /** The page of the comment; null if it is unknown. */
  readonly url: string | null;
  /** `2026-01-05 12:00 UTC`. */
  readonly time: string;
}

/** The placeholders of the templates of a mail, as `{{name}}` (docs/channels.md lists them). */
export interface Digest {
  /** Name of the recipient. */
  readonly name: string;
  readonly count: number;
  /** The only notification; null if there are several. */
  readonly single: DigestItem | null;
  readonly notifications: readonly DigestItem[];
  /** Where the recipient ends these mails; null without `publicUrl`. */
  readonly unsubscribeUrl: string | null;
}

/** A mail's content. */
export interface Content {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

const files = { subject: 'subject.txt', text: 'digest.txt', html: 'digest.html' } as const;

const builtIn: Readonly<Record<keyof typeof files, string>> = {
  subject:
    '{{#single}}{{author}} {{did}} on {{room}}{{/single}}{{^single}}{{count}} unread comments for you{{/single}}',
  text: `Hello {{name}},
{{#notifications}}

{{author}} {{did}} on {{room}} ({{time}}):

{{text}}

{{#url}}
{{url}}
{{/url}}
{{/notifications}}
{{#unsubscribeUrl}}

--
To get no more of these mails: {{unsubscribeUrl}}
{{/unsubscribeUrl}}
`,
  html: `<!doctype html>
<html>
<body style="margin:0;padding:24px;font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#ffffff">
<p>Hello {{name}},</p>
{{#notifications}}
<p style="margin:24px 0 4px"><strong>{{author}}</strong> {{did}} on {{room}} <span style="color:#666666">{{time}}</span></p>
<blockquote style="margin:0;padding:8px 16px;border-left:3px solid #cccccc;white-space:pre-wrap">{{text}}</blockquote>
{{#url}}
<p style="margin:4px 0"><a href="{{url}}">Open the comment</a></p>
{{/url}}
{{/notifications}}
{{#unsubscribeUrl}}
<p style="margin-top:32px;font-size:13px;color:#666666"><a href="{{unsubscribeUrl}}" style="color:#666666">No more of these mails</a></p>
{{/unsubscribeUrl}}
</body>
</html>
`,
};

/**
 * Renders a mail. In HTML every value is escaped.
 *
 * @param folder of templates that replace the built-in ones; undefined for none
 * @throws Error naming the file that cannot be read or is no template
 */
export async function renderDigest(digest: Digest, folder: string | undefined): Promise<Content> {
  const fill = async (part: keyof typeof files): Promise<string> => {
    const template = folder === undefined ? builtIn[part] : await readTemplate(folder, part);
    try {
      return mustache.render(template, digest, {}, part === 'html' ? undefined : { escape: String });
    } catch (error) {
      throw new Error(`templates: ${files[part]}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  };
  const [subject, text, html] = await Promise.all([fill('subject'), fill('text'), fill('html')]);
  return { subject: subject.replaceAll(/\s+/g, ' ').trim(), text, html };
}

async function readTemplate(folder: string, part: keyof typeof files): Promise<string> {
  try {
    return await readFile(join(folder, files[part]), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return await builtInBeside(folder, part);
    throw new Error(`templates: ${join(folder, files[part])} cannot be read (${code})`, { cause: error });
  }
}

/** The built-in template for a file that the folder does not have. Throws if there is no such folder. */
async function builtInBeside(folder: string, part: keyof typeof files): Promise<string> {
  await access(folder).catch((cause: unknown) => {
    throw new Error(`templates: the folder ${folder} does not exist`, { cause });
  });
  return builtIn[part];
}
