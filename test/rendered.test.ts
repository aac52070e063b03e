import t from 'tap';
import { existsSync } from 'node:fs';
import { renderedFiles } from '../tools/rendered.ts';
import { readSource } from './helpers/sources.ts';

t.test('what is rendered from code is current', async (t) => {
  for (const [path, text] of await renderedFiles()) {
    const present = existsSync(new URL(`../${path}`, import.meta.url)) ? readSource(path) : '';
    t.equal(present, text, `${path}; after a change run: node --import=tsx tools/render-docs.ts`);
  }
});
