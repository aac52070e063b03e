import t from 'tap';
import { picture } from '../fixtures/media.ts';
import { startService } from '../helpers/service.ts';
import { type TestFile, upload } from '../helpers/upload.ts';

const png = async (width: number, height: number): Promise<TestFile> => ({
  bytes: await picture(width, height).png({ compressionLevel: 1 }).toBuffer(),
  type: 'image/png',
});

t.test('a user who floods the server with large images does not keep another waiting', async (t) => {
  const service = await startService(t, { flags: { 'uploads.megapixelsPerMinute': '0' } });
  const tenant = await service.tenant('dev');
  const [large, small] = [await png(4_000, 4_000), await png(9, 9)];
  const bob = await tenant.userHeaders({ userId: 'bob' });
  const { media } = service.ctx;
  if (media === undefined) throw new Error('a service reads images');
  // Counted from the moment at which the image waits for a decoder: how long a request takes until then depends on what
  // else this machine does.
  const image = media.image.bind(media);
  let decoded = 0;
  let decodedBefore = Number.POSITIVE_INFINITY;
  media.image = async (file, admit) => {
    const already = decoded;
    const facts = await image(file, admit);
    if (file.size === small.bytes.length) decodedBefore = decoded - already;
    else decoded += 1;
    return facts;
  };
  let answered = 0;
  const send = async (): Promise<void> => {
    t.equal((await upload(tenant, large)).status, 200);
    answered += 1;
  };
  const first = send();
  const flood = Array.from({ length: 12 }, send);
  await first;
  const before = answered;
  t.equal((await upload(tenant, small, { headers: bob })).status, 200);
  t.ok(decodedBefore <= 4, `${decodedBefore} large images were decoded first`);
  t.ok(answered - before < flood.length, 'it was not answered last');
  await Promise.all(flood);
});

t.test('the pixels of a user are bounded over all workers: beyond it 429, which names the limit', async (t) => {
  const service = await startService(t, { workers: 2, flags: { 'uploads.megapixelsPerMinute': '2' } });
  const tenant = await service.tenant('dev');
  const megapixel = await png(1_000, 1_000);
  const elsewhere = { ...tenant, service: { ...service, urls: service.urls.slice(1) } };
  t.equal((await upload(tenant, megapixel)).status, 200);
  t.equal((await upload(elsewhere, megapixel)).status, 200);
  for (const worker of [tenant, elsewhere]) {
    const refused = await upload(worker, megapixel);
    t.equal(refused.status, 429);
    t.equal(refused.headers.get('x-error-code'), 'rate_limited');
    t.equal(refused.headers.get('retry-after'), '30');
    t.equal(
      refused.json.error,
      'PNG, GIF, WebP and progressive JPEG images of more than 2 megapixels in a minute. Try again in 30s',
    );
  }
  t.equal((await upload(tenant, megapixel, { headers: await tenant.userHeaders({ userId: 'bob' }) })).status, 200);
  service.clock.advance(30_000);
  t.equal((await upload(tenant, megapixel)).status, 200);
});
