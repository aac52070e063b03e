import t, { type Test } from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/load.ts';
import { createLogger } from '../../src/observability/log.ts';
import { BackgroundPlugins } from '../../src/plugins/background/background-plugins.ts';
import { createWorld } from '../domain/world.ts';

const use = fileURLToPath(new URL('../fixtures/plugins/loads-later.mjs', import.meta.url));

/** Loads the plugin as the background worker does, after so many failures. */
async function loadAfter(
  t: Test,
  failures: number,
  optional = false,
): Promise<{ consumers: string[]; log: { level: string; msg: string; reason: string; err: { message: string } }[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'collab-loads-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  Object.assign(process.env, { FAILED_LOADS: String(failures), LOADS_FOLDER: folder });
  const world = await createWorld(t);
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    name: 'background',
    destination: { write: (line: string) => void lines.push(line) },
  });
  const config = { ...loadConfig({ dir: folder, env: {}, flags: {} }), plugins: [{ use, optional }] };
  const plugins = await BackgroundPlugins.load({ ctx: world.ctx, config, log });
  t.teardown(() => plugins.stop());
  return { consumers: plugins.consumers.map(({ name }) => name), log: lines.map((line) => JSON.parse(line) as never) };
}

t.test('a plugin whose load fails twice in the background worker runs all the same', async (t) => {
  const { consumers, log } = await loadAfter(t, 2);
  t.ok(consumers.includes('plugin-loads-later'));
  t.match(log, [
    { level: 'warn', err: { message: /failure 1/ } },
    { level: 'warn', err: { message: /failure 2/ } },
  ]);
});

t.test('a plugin whose load keeps failing is left out with an error, and the others run', async (t) => {
  const { consumers, log } = await loadAfter(t, 100);
  t.notOk(consumers.includes('plugin-loads-later'));
  t.ok(consumers.includes('plugin-webhook'));
  t.match(log.at(-1), { level: 'error', err: { message: /failure 3/ }, msg: /do not run until the next start/ });
});

t.test('an optional plugin whose load keeps failing is one line', async (t) => {
  const { log } = await loadAfter(t, 100, true);
  t.match(log, [
    {
      level: 'warn',
      reason: /failure 3/,
      err: undefined,
      msg: /^an optional plugin could not be loaded: its actions and jobs do not run/,
    },
  ]);
  t.equal(log.length, 1);
});
