import type { Command } from 'commander';
import { openapiDocument } from '../../../http/openapi/openapi.ts';
import { addCommand } from '../../command.ts';
import { print } from '../../terminal/output.ts';

/** Adds `openapi`. */
export function register(program: Command): void {
  addCommand(program, 'openapi', {
    summary: 'Print the OpenAPI 3.1 description of the REST API.',
    usesFolder: false,
    examples: ['collab openapi > openapi.json'],
  }).action(() => print(JSON.stringify(openapiDocument(), null, 2)));
}
