import t from 'tap';
import type { Environment } from '../../src/model/environments/environment.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const dir = tempFolder(t);
t.before(() => newFolder(dir));

t.test('an environment is created with a signing secret, listed and shown', async (t) => {
  const made = await collabJson<Environment & { jwtSecret: string; jwtKid: string }>(t, [
    'env',
    'create',
    'staging',
    '--name',
    'Staging',
    '--dir',
    dir,
  ]);
  t.strictSame(Object.keys(made).slice(0, 4), ['id', 'streamId', 'slug', 'name']);
  t.match(made, { slug: 'staging', name: 'Staging', disabled: false });
  t.ok(made.jwtSecret.length >= 32);
  const { items } = await collabJson<{ items: Environment[] }>(t, ['env', 'list', '--dir', dir]);
  t.strictSame(items.map(({ slug }) => slug).toSorted(), ['default', 'staging']);
  const shown = await collabJson<Environment>(t, ['env', 'show', 'staging', '--dir', dir]);
  t.equal(shown.id, made.id);
  t.notOk(JSON.stringify(shown).includes(made.jwtSecret), 'the secret is shown once');
  const byId = await collabJson<Environment>(t, ['env', 'show', made.id, '--dir', dir]);
  t.equal(byId.slug, 'staging');
  t.match((await collab(['env', 'list', '--dir', dir])).stdout, /^SLUG +NAME +ID +STATE +CREATED\n/);
});

t.test('a slug in use is refused with 1, a malformed one with 2', async (t) => {
  t.match(await collab(['env', 'create', 'default', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /default.*\n {2}→ Choose another slug/,
  });
  t.match(await collab(['env', 'create', 'Not A Slug', '--dir', dir]), { code: 2, stdout: '', stderr: /slug/ });
});

t.test('settings are changed individually', async (t) => {
  await collabJson(t, ['env', 'create', 'tuned', '--dir', dir]);
  const update = (...args: string[]) => collabJson<Environment>(t, ['env', 'update', 'tuned', ...args, '--dir', dir]);
  t.match(await update('--max-file-size-mb', '25', '--disable-media', 'video,audio'), {
    settings: { maxFileSizeMb: 25, media: { image: true, audio: false, video: false } },
  });
  t.match(await update('--enable-media', 'audio', '--require-known-users', 'false'), {
    settings: { maxFileSizeMb: 25, media: { image: true, audio: true, video: false }, requireKnownUsers: false },
  });
  t.match(await update('--allowed-origins', 'https://a.example.com, http://localhost:3000'), {
    settings: { allowedOrigins: ['https://a.example.com', 'http://localhost:3000'], requireKnownUsers: false },
  });
  t.strictSame((await update('--allowed-origins', '')).settings.allowedOrigins, []);
  t.match(
    await update(
      '--token-lifetime',
      '7d',
      '--token-issuer',
      'https://idp.example.com',
      '--limits',
      'bodyLength=5000,mentions=20',
    ),
    {
      settings: {
        jwtMaxLifetime: 604_800,
        jwtIssuer: 'https://idp.example.com',
        limits: { bodyLength: 5000, mentions: 20 },
      },
    },
  );
  t.match(await update('--strict', 'true'), { settings: { strict: true } });
  t.match(await update('--token-issuer', '', '--limits', 'mentions=7'), {
    settings: { jwtIssuer: null, limits: { bodyLength: 5000, mentions: 7 } },
  });
  t.match(await update('--quotas', 'userComments=5000,uploadMb=off'), {
    settings: { quotas: { userComments: 5000, uploadMb: null } },
  });
  t.match((await collab(['env', 'show', 'tuned', '--dir', dir])).stdout, /uploads +0 of unlimited MB/);
  t.match(await update('--name', 'Finely tuned', '--disabled', 'true'), { name: 'Finely tuned', disabled: true });
  t.match(await update('--disabled', 'false'), { name: 'Finely tuned', disabled: false });
});

t.test('an invalid setting is refused with 2, naming it and what it accepts', async (t) => {
  const cases: [args: string[], stderr: RegExp][] = [
    [[], /No option was given/],
    [['--max-file-size-mb', '0'], /--max-file-size-mb must be a whole number from 1 to 10240, not "0"/],
    [['--enable-media', 'text'], /--enable-media must be one of image, audio, video, not "text"/],
    [['--require-known-users', 'yes'], /--require-known-users must be true or false, not "yes"/],
    [
      ['--allowed-origins', 'https://a.example.com/'],
      /--allowed-origins must contain origins such as https:\/\/a\.example\.com, not/,
    ],
    [['--allowed-origins', 'a.example.com'], /--allowed-origins must contain origins/],
    [['--token-lifetime', '30s'], /--token-lifetime must be from 1m to 365d, not "30s"/],
    [['--limits', 'bodyLength'], /--limits must contain pairs such as bodyLength=5000, not "bodyLength"/],
    [['--limits', 'body=1'], /--limits must be one of bodyLength, /],
    [
      ['--quotas', 'uploadMb'],
      /--quotas must contain pairs such as userComments=5000 or userComments=off, not "uploadMb"/,
    ],
    [['--quotas', 'uploadMb=0'], /--quotas uploadMb must be a whole number from 1 to 1000000000, not "0"/],
    [['--limits', 'bodyLength=0'], /--limits bodyLength must be a whole number from 1 to 1000000, not "0"/],
  ];
  for (const [args, stderr] of cases)
    t.match(await collab(['env', 'update', 'default', ...args, '--dir', dir]), { code: 2, stdout: '', stderr });
});

t.test('without a terminal an environment is deleted only with --yes', async (t) => {
  const { id } = await collabJson<Environment>(t, ['env', 'create', 'doomed', '--dir', dir]);
  const refused = await collab(['env', 'delete', 'doomed', '--dir', dir]);
  t.match(refused, {
    code: 2,
    stdout: '',
    stderr: /deletes the environment doomed .*Nothing was changed.*\n {2}→ Add --yes/,
  });
  t.match(await collabJson(t, ['env', 'show', 'doomed', '--dir', dir]), { id });
  t.strictSame(await collabJson(t, ['env', 'delete', 'doomed', '--yes', '--dir', dir]), {
    deleted: true,
    id,
    slug: 'doomed',
  });
  t.match(await collab(['env', 'show', 'doomed', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /doomed.*\n {2}→ `collab env list --dir \S+` lists/,
  });
});
