import { join } from 'node:path';
import t from 'tap';
import Type from 'typebox';
import { loadPlugin } from '../../src/plugins/loading/load.ts';
import { readSettings } from '../../src/plugins/loading/settings.ts';

const smtp = { host: 'smtp.example.com' };

t.test('the paths of the plugin email are relative to the folder of config.json', async (t) => {
  const entry = {
    use: 'email',
    folder: '/srv/collab',
    config: { smtp: { ...smtp, caFile: 'ca.pem' }, from: 'a@b.c', templates: './templates' },
  };
  const { settings } = await loadPlugin({
    ...entry,
    environments: { staging: { config: { templates: '../staging' } }, live: { config: { templates: '/etc/mail' } } },
  });
  t.match(settings.base.config, { smtp: { caFile: '/srv/collab/ca.pem' }, templates: '/srv/collab/templates' });
  t.match(settings.environments.get('staging')?.config, { templates: '/srv/staging' });
  t.match(settings.environments.get('live')?.config, { templates: '/etc/mail' }, 'an absolute path stays');
  await t.rejects(loadPlugin({ ...entry, config: { ...entry.config, templates: '' } }), {
    message: /config\.templates must be at least 1 character,/,
  });
  await t.rejects(loadPlugin({ ...entry, config: { ...entry.config, templates: 7 } }), {
    message: /config\.templates must be a string/,
  });
});

t.test('without a folder they are relative to the current one, and defaults are paths too', async (t) => {
  const schema = Type.Object({
    data: Type.String({ isPath: true, default: 'data' }),
    other: Type.String({ default: 'data' }),
  });
  t.strictSame(readSettings('own', schema, { use: 'own' }).base.config, {
    data: join(process.cwd(), 'data'),
    other: 'data',
  });
});
