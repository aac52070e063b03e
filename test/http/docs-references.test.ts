import { readFileSync } from 'node:fs';
import t from 'tap';
import { withoutReferences } from '../../src/http/pages/docs-page/references.ts';

const document = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, unknown>>;
};

t.test('no operation of the reference has a reference left', async (t) => {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of Object.keys(operations)) {
      const shown = JSON.stringify(withoutReferences(document, ['paths', path, method], 'http://x/docs'));
      t.notMatch(shown, '"$ref"', `${method} ${path}`);
    }
  }
});

t.test('a reference is replaced by what it names, and one within what it names stays', async (t) => {
  const tree = { type: 'object', properties: { children: { items: { $ref: '#/schemas/a~1tree' } } } };
  const schemas = { 'a/tree': tree, list: [{ $ref: '#/schemas/a~1tree' }, null, 1] };
  t.strictSame(withoutReferences({ schemas }, ['schemas', 'list'], '/docs'), [
    { ...tree, $$ref: '/docs#/schemas/a~1tree' },
    null,
    1,
  ]);
  t.equal(withoutReferences({ schemas }, ['schemas', 'gone'], '/docs'), undefined);
});
