import { readFileSync } from 'node:fs';
import { ConfigSchema as emailOptions } from '../plugins/email/config.ts';
import { ConfigSchema as slackOptions } from '../plugins/slack/config.ts';
import { ConfigSchema as webPushOptions } from '../plugins/web-push/config.ts';
import { createProgram } from '../src/cli/main.ts';
import { renderCliReference } from './cli-reference.ts';
import { renderExample, renderReference, renderSchema } from '../src/config/example.ts';
import { asyncapiDocument } from '../src/http/openapi/asyncapi.ts';
import { openapiDocument } from '../src/http/openapi/openapi.ts';
import { socketSchemas } from '../src/realtime/socket-schemas.ts';
import { renderSdkReference, type Routes } from './sdk-reference.ts';
import { renderWidgetReference } from './widget-reference.ts';
import { withSection } from './marked-section.ts';
import { renderPluginOptions } from './plugin-options.ts';

/** The files that are rendered from code, completely or in part: expected content by path. */
export async function renderedFiles(): Promise<Map<string, string>> {
  const channels = { slack: slackOptions, email: emailOptions, 'web-push': webPushOptions };
  const openapi = openapiDocument();
  return new Map([
    ['config.example.json', renderExample()],
    ['config.schema.json', renderSchema()],
    ['docs/openapi.json', `${JSON.stringify(openapi, null, 2)}\n`],
    ['docs/asyncapi.json', `${JSON.stringify(asyncapiDocument(socketSchemas), null, 2)}\n`],
    ['docs/configuration.md', withSection(readSource('docs/configuration.md'), 'options', renderReference())],
    ['docs/cli.md', withSection(readSource('docs/cli.md'), 'commands', renderCliReference(await createProgram([])))],
    ['docs/widget.md', withSection(readSource('docs/widget.md'), 'interface', renderWidgetReference())],
    [
      'docs/sdk.md',
      withSection(
        readSource('docs/sdk.md'),
        'methods',
        renderSdkReference(readSource('src/client/rest/client.ts'), openapi['paths'] as Routes),
      ),
    ],
    [
      'docs/channels.md',
      Object.entries(channels).reduce(
        (page, [name, schema]) => withSection(page, name, renderPluginOptions(schema)),
        readSource('docs/channels.md'),
      ),
    ],
  ]);
}

function readSource(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}
