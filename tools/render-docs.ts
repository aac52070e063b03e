// Updates the files that are rendered from code: config.example.json, config.schema.json, docs/openapi.json, and the
// references in docs/configuration.md, docs/cli.md, docs/widget.md, docs/sdk.md and docs/channels.md. Run it after
// changing an option, a command, a route or the interface of the widget or SDK: node --import=tsx tools/render-docs.ts
import { writeFileSync } from 'node:fs';
import { renderedFiles } from './rendered.ts';

for (const [path, text] of await renderedFiles()) writeFileSync(new URL(`../${path}`, import.meta.url), text);
