import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { S3Server } from '../doubles/s3/server.ts';
import { picture } from '../fixtures/media.ts';
import { startServer } from '../helpers/cli.ts';
import { collab } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

t.test('files that a bucket has lost, as after the restore of an older one', { timeout: 120_000 }, async (t) => {
  const [s3, dir] = [await S3Server.start(t), tempFolder(t)];
  const { env, ...blobs } = s3.options;
  const keys = await newFolder(dir);
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ blobs, storage: { minFreeMb: 0 } }));
  const start = () => startServer(t, dir, ['--workers', '1'], { env });
  let server = await start();
  const headers = { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': await userToken(keys, 'ann') };
  const upload = async (): Promise<string> => {
    const form = new FormData();
    form.append('file', new Blob([await picture(640, 480).jpeg().toBuffer()], { type: 'image/jpeg' }), 'a.jpg');
    const answer = await fetch(`${server.url}/api/v1/upload`, { method: 'POST', headers, body: form });
    return ((await answer.json()) as { id: string }).id;
  };
  const read = async (id: string): Promise<number[]> =>
    Promise.all(
      ['', '?thumb=1'].map(
        async (query) => (await fetch(`${server.url}/files/${keys.environment.id}/${id}${query}`, { headers })).status,
      ),
    );
  const [lost, bare, changed] = [await upload(), await upload(), await upload()];
  for (const id of [lost, bare, changed]) t.same(await read(id), [200, 200]);
  const copy = new Map(s3.bucket.objects);
  for (const [key, bytes] of copy) {
    if (key.includes(lost) || key.endsWith(`${bare}.thumb`)) s3.bucket.objects.delete(key);
    if (key.endsWith(changed)) s3.bucket.objects.set(key, Buffer.alloc(bytes.length, 7));
  }
  // Small files were in the memory of the process.
  await server.end();
  server = await start();

  t.same(await read(lost), [404, 404], 'a thumbnail is not waited for');
  t.same(await read(bare), [200, 200], 'a lost thumbnail is made again');
  // In this process, which has not opened the store before.
  const doctor = await collab(['doctor', '--deep', '--dir', dir], { env, inside: true });
  t.equal(doctor.code, 1);
  t.match(doctor.stdout, `1 of 3 files are missing in the bucket, such as ${lost}`);
  t.match(doctor.stdout, `${lost} is missing\n`);
  t.match(doctor.stdout, `${changed} does not have the SHA-256 of its record\n`);
  t.match(doctor.stdout, /Bring back their objects, by their versions or from the copy of the bucket/);
  t.notMatch(doctor.stdout, /disk errors|collab restore/);
  t.notMatch(server.errors(), '"level":"error"', 'nothing is tried in vain');

  for (const [key, bytes] of copy) s3.bucket.objects.set(key, bytes);
  for (const [key] of copy) if (key.endsWith('.thumb')) s3.bucket.objects.delete(key);
  await server.end();
  server = await start();
  for (const id of [lost, bare, changed]) t.same(await read(id), [200, 200], 'back with their bytes');
  t.equal(await server.end(), 0);
  t.match(await collab(['doctor', '--deep', '--dir', dir], { env, inside: true }), { code: 0 });
});
