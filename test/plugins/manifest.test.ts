import { readFileSync } from 'node:fs';
import t from 'tap';
import { checkPlugin } from '../../src/plugins/loading/check-plugin.ts';
import { withDefaults } from '../../src/plugins/loading/locate.ts';

await t.test('the manifest of a plugin that is loaded by default is what the plugin registers', async (t) => {
  const entries = withDefaults([]);
  t.not(entries.length, 0);
  for (const entry of entries) {
    const { config, ...manifest } = JSON.parse(
      readFileSync(new URL(`../../dist/plugins/${entry.use}.json`, import.meta.url), 'utf8'),
    ) as Record<string, unknown>;
    const { settings, ...info } = await checkPlugin(entry, '');
    t.strictSame(manifest, JSON.parse(JSON.stringify(info)));
    t.strictSame(settings, { base: { enabled: true, priority: undefined, config }, environments: new Map() });
  }
});
