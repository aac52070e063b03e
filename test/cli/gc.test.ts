import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Check } from '../../src/cli/doctor/check.ts';
import { checkFilesOf } from '../../src/cli/doctor/check-files.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import { picture } from '../fixtures/media.ts';
import { startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { until } from '../helpers/cluster.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

t.test('files that are not needed are found by doctor and removed by gc', async (t) => {
  const dir = tempFolder(t);
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 } }));
  const keys = await newFolder(dir);
  const { environment, publishableKey } = keys;
  const token = await userToken(keys, 'ann');
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { 'X-Service-Key': publishableKey, 'X-Service-Token': token };
  const bytes = new Uint8Array(await picture(300, 300).jpeg().toBuffer());
  const upload = async (): Promise<Response> => {
    const form = new FormData();
    form.append('file', new Blob([bytes], { type: 'image/jpeg' }), 'a.jpg');
    return fetch(`${server.url}/api/v1/upload`, { method: 'POST', headers, body: form });
  };
  // As doctor calls it.
  const filesCheck = (): Promise<Check> => checkFilesOf({ dir, config: loadConfig({ dir, env: {}, flags: {} }) });

  const attachment = (await (await upload()).json()) as Attachment;
  const thumbnail = await fetch(attachment.thumbnailUrl ?? '', { headers });
  t.equal(thumbnail.status, 200, 'made by the background worker');
  t.match(await filesCheck(), { level: 'ok', finding: '1, each with its record' });

  const files = join(dir, 'data', 'files');
  const stray = join(files, environment.id, 'file_00000');
  mkdirSync(stray, { recursive: true });
  writeFileSync(join(stray, 'file_0000000000000000000a'), 'left by a crash');
  const staged = join(files, '.staging', 'cut-off');
  writeFileSync(staged, 'half of it');
  utimesSync(staged, new Date(0), new Date(0));
  t.match(await filesCheck(), {
    level: 'warn',
    finding: /^1 files without a record take 1 kB; 1 uploads were never finished$/,
  });
  t.match(await collabJson(t, ['gc', '--dir', dir, '--dry-run']), {
    dryRun: true,
    unlinked: 0,
    orphans: 1,
    orphanBytes: 15,
    staged: 1,
  });
  t.match(
    (await collab(['gc', '--dir', dir, '--dry-run'])).stdout,
    /Would remove[^]* 1 uploads that were never finished/,
  );
  t.match(await collabJson(t, ['gc', '--dir', dir]), { dryRun: false, orphans: 1, staged: 1 });
  t.match((await collab(['gc', '--dir', dir])).stdout, /nothing to remove/);
  t.match(await filesCheck(), { level: 'ok' });

  await collabJson(t, [
    'env',
    'update',
    'default',
    '--dir',
    dir,
    '--disable-media',
    'image,video',
    '--max-file-size-mb',
    '3',
  ]);
  const refused = await upload();
  t.equal(refused.status, 403, 'the running server follows at once');
  t.same(await refused.json(), { error: 'Image uploads are disabled for this environment' });
  await collabJson(t, ['env', 'update', 'default', '--dir', dir, '--enable-media', 'image']);
  t.equal((await upload()).status, 200);

  rmSync(join(files, environment.id, attachment.id.slice(0, 10), attachment.id));
  t.match(await filesCheck(), { level: 'fail', finding: /^1 of 2 files are missing [^;]+$/, remedy: /show them\.$/ });
  mkdirSync(stray, { recursive: true });
  writeFileSync(join(stray, 'file_0000000000000000000a'), 'left by a crash');
  t.match(await filesCheck(), {
    level: 'fail',
    finding: /^1 of 2 files are missing .+; 1 files without a record/,
    remedy: / gc --dir /,
  });
  const { stdout } = await collab(['doctor', '--dir', dir, '--json']);
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  t.match(
    checks.find(({ name }) => name === 'files'),
    { level: 'fail', finding: /^1 of 2 files are missing .+; 1 files without a record/ },
  );
  await collabJson(t, ['env', 'delete', 'default', '--dir', dir, '--yes']);
  await until(async () => (await fetch(attachment.url, { headers })).status === 401);
  t.throws(() => rmSync(join(files, environment.id)), { code: 'ENOENT' }, 'the files go with their environment');
});
