import { readFileSync } from 'node:fs';
import { createProgram } from '../src/cli/main.ts';
import { renderCliReference } from './cli-reference.ts';
import { renderExample, renderReference } from '../src/config/example.ts';
import { openapiDocument } from '../src/http/openapi/openapi.ts';
import { withSection } from './marked-section.ts';

/** The files that are rendered from code, completely or in part: expected content by path. */
export async function renderedFiles(): Promise<Map<string, string>> {
  return new Map([
    ['config.example.json', renderExample()],
    ['docs/openapi.json', `${JSON.stringify(openapiDocument(), null, 2)}\n`],
    ['docs/configuration.md', withSection(readSource('docs/configuration.md'), 'options', renderReference())],
    ['docs/cli.md', withSection(readSource('docs/cli.md'), 'commands', renderCliReference(await createProgram([])))],
  ]);
}

function readSource(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}
