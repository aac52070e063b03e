import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import t, { type Test } from 'tap';
import { createKey } from '../../src/domain/access/keys.ts';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { filesOf } from '../../src/domain/records/partitions.ts';
import { acceptedTypes, contradicts, type StoredFile } from '../../src/model/attachment.ts';
import { createLogger } from '../../src/observability/log.ts';
import { FileJobs } from '../../src/workers/background/file-jobs.ts';
import { durationFile } from '../fixtures/durations.ts';
import { animation, fragmentedMp4, mp4, picture, wav, webm } from '../fixtures/media.ts';
import { until } from '../helpers/cluster.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import {
  abandonUpload,
  formOf,
  getFile,
  postForm,
  sendUntilAnswered,
  type TestFile,
  upload,
} from '../helpers/upload.ts';

// Upload and serving of files (docs/api.md, "Files").

const service = await startService(t);
const jobs = new FileJobs(service.ctx, createLogger({ level: 'silent', name: 'test' }));
jobs.start();
t.teardown(() => jobs.stop());
const tenant = await service.tenant('uploads');
const MEGABYTE = 1024 * 1024;

const jpeg: TestFile = { bytes: await picture(640, 480).jpeg().toBuffer(), type: 'image/jpeg', name: 'holiday.jpg' };
const ofType = async (type: string): Promise<Buffer> => {
  if (type.startsWith('image/'))
    return picture(30, 20)
      .toFormat(type.slice(6) as 'png')
      .toBuffer();
  if (type === 'audio/wav') return wav(0.5);
  if (type.endsWith('webm')) return webm(1_200, { video: type.startsWith('video') });
  if (type.endsWith('mp4')) return mp4('M4A');
  // Nothing that is known: an Ogg or MPEG stream may look like anything.
  return Buffer.alloc(500, 0x55);
};

function pathOf({ url }: { url: string }): string {
  return new URL(url).pathname;
}

/** Reads a JPEG and gives what it is. */
async function shape(bytes: Buffer): Promise<object> {
  const { format, width, height } = await sharp(bytes).metadata();
  return { format, width, height };
}

t.test('Upload', async (t) => {
  await t.test('POST | /upload | multipart/form-data; one part named `file` | 200 the service object', async (t) => {
    const { status, json } = await upload(tenant, jpeg);
    t.equal(status, 200);
    const url = `${service.urls[0]}/files/${tenant.environment.id}/${json.id}`;
    t.strictSame(json, {
      id: json.id,
      type: 'image',
      filename: 'holiday.jpg',
      mimeType: 'image/jpeg',
      sizeBytes: jpeg.bytes.length,
      url,
      thumbnailUrl: `${url}?thumb=1`,
      width: 640,
      height: 480,
    });
  });

  await t.test('The credential is the publishable key plus a user JWT, not the secret key', async (t) => {
    const { 'X-Service-Key': key = '', 'X-Service-Token': token = '' } = await tenant.userHeaders({ userId: 'ann' });
    const cases: Record<string, Record<string, string>> = {
      none: {},
      'X-Service-Key missing': { 'X-Service-Token': token },
      'X-Service-Token missing': { 'X-Service-Key': key },
      'X-Service-Key invalid': { 'X-Service-Key': 'pk_x', 'X-Service-Token': token },
      'X-Service-Token invalid': { 'X-Service-Key': key, 'X-Service-Token': `${token}x` },
      'the secret key': { Authorization: `Bearer ${tenant.secretKey}` },
    };
    for (const [name, headers] of Object.entries(cases))
      t.equal((await upload(tenant, jpeg, { headers })).status, 401, name);
    t.equal((await postForm(tenant, 'no form', {})).status, 401, 'before anything about the body');
  });

  await t.test('who uploads is known from then on, and a viewer may not', async (t) => {
    const headers = await tenant.userHeaders({ userId: 'zoe', name: 'Zoe' });
    t.equal((await upload(tenant, jpeg, { headers })).status, 200);
    t.match((await tenant.request('GET', '/users/zoe')).json, { user: { userId: 'zoe', name: 'Zoe' } });
    t.equal(
      (await upload(tenant, jpeg, { headers: await tenant.userHeaders({ userId: 'vic', role: 'viewer' }) })).status,
      403,
    );
  });

  const accepted: Record<string, string[]> = {
    image: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'],
    audio: ['audio/webm', 'audio/ogg', 'audio/mp4', 'audio/mpeg', 'audio/wav'],
    video: ['video/webm', 'video/mp4'],
  };
  for (const [type, mimeTypes] of Object.entries(accepted)) {
    await t.test(`${type} | ${mimeTypes.join(', ')}`, async (t) => {
      for (const mimeType of mimeTypes) {
        const { status, json } = await upload(tenant, { bytes: await ofType(mimeType), type: mimeType });
        t.equal(status, 200, JSON.stringify(json));
        t.match(json, { type, mimeType });
        t.equal(json.width, type === 'image' ? 30 : undefined);
        t.equal('thumbnailUrl' in json, type === 'image');
      }
      const { json } = await upload(tenant, {
        bytes: await ofType(mimeTypes[0] ?? ''),
        type: `${mimeTypes[0]?.toUpperCase()}; codecs=x`,
      });
      t.equal(json.mimeType, mimeTypes[0], 'without parameters, in lower case');
    });
  }

  await t.test('durationMs | audio and video only, milliseconds', async (t) => {
    t.equal((await upload(tenant, { bytes: wav(1.25), type: 'audio/wav' })).json.durationMs, 1250);
    t.equal((await upload(tenant, { bytes: webm(1_200), type: 'audio/webm' })).json.durationMs, 1200, 'a recording');
    t.equal(
      (await upload(tenant, { bytes: fragmentedMp4(3), type: 'audio/mp4' })).json.durationMs,
      3000,
      'a recording in fragments',
    );
    t.equal(
      (await upload(tenant, { bytes: durationFile('silent.mp4').bytes, type: 'video/mp4' })).json.durationMs,
      2000,
      'a video without sound',
    );
    t.notOk(
      'durationMs' in (await upload(tenant, { bytes: Buffer.alloc(99, 5), type: 'audio/ogg' })).json,
      'left out where nobody can tell',
    );
  });

  await t.test('filename | original filename, made harmless', async (t) => {
    const names: [given: string, kept: string][] = [
      ['Über uns.jpg', 'Über uns.jpg'],
      ['../../etc/passwd', 'passwd'],
      ['C:\\pictures\\cat.jpg', 'cat.jpg'],
      ['.htaccess', 'htaccess'],
      ['a\u202Egpj.exe\u0007', 'agpj.exe'],
      ['', 'file.jpeg'],
      [`${'ü'.repeat(200)}.jpeg`, `${'ü'.repeat(125)}.jpeg`],
    ];
    for (const [name, kept] of names)
      t.equal((await upload(tenant, { ...jpeg, name })).json.filename, kept, JSON.stringify(name));
  });
});

t.test('Upload errors', async (t) => {
  const refused = async (
    t: Test,
    name: string,
    answer: Promise<{ status: number; json: { error: string } }>,
    error: RegExp,
  ): Promise<void> => {
    const { status, json } = await answer;
    t.equal(status, 400, name);
    t.match(json, { error }, name);
  };

  await t.test('400 | no file provided, or unsupported MIME type', async (t) => {
    const empty = new FormData();
    empty.append('other', new Blob(['x']), 'x');
    await refused(t, 'another part', upload(tenant, jpeg, { form: empty }), /No file provided/);
    const two = formOf(jpeg);
    two.append('file', new Blob([new Uint8Array(jpeg.bytes)], { type: 'image/jpeg' }), 'b.jpg');
    await refused(t, 'two files', upload(tenant, jpeg, { form: two }), /one file at a time/);
    await refused(t, 'no bytes', upload(tenant, { ...jpeg, bytes: Buffer.alloc(0) }), /The file is empty/);
    const headers = await tenant.userHeaders({ userId: 'ann' });
    await refused(
      t,
      'no form',
      postForm(tenant, '{}', { ...headers, 'Content-Type': 'application/json' }),
      /No file provided/,
    );
    const cut =
      '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\nContent-Type: image/png\r\n\r\nhalf';
    await refused(
      t,
      'cut off',
      postForm(tenant, cut, { ...headers, 'Content-Type': 'multipart/form-data; boundary=b' }),
      /ends before/,
    );
    for (const type of ['text/html', 'image/svg+xml', 'application/pdf', 'video/quicktime', 'constructor', '']) {
      await refused(t, `type ${type}`, upload(tenant, { ...jpeg, type }), /Unsupported MIME type/);
    }
  });

  await t.test('200 | other names of an accepted type', async (t) => {
    for (const [sent, stored] of [
      ['image/jpg', 'image/jpeg'],
      ['IMAGE/PJPEG; q=1', 'image/jpeg'],
    ] as const) {
      const { json } = await upload(tenant, { ...jpeg, type: sent });
      t.equal(json.mimeType, stored, sent);
    }
    for (const [sent, stored] of [
      ['audio/x-wav', 'audio/wav'],
      ['audio/x-m4a', 'audio/mp4'],
      ['audio/mp3', 'audio/mpeg'],
    ] as const) {
      const { json } = await upload(tenant, { bytes: await ofType(stored), type: sent, name: 'sound' });
      t.match(json, { type: 'audio', mimeType: stored }, sent);
    }
  });

  await t.test(
    '200 | Matroska with the codecs that browsers record is WebM, with any other it is refused',
    async (t) => {
      const matroska = (codec: string, video = false) => webm(2_500, { docType: 'matroska', codec, video });
      for (const [sent, codec, stored] of [
        ['audio/webm;codecs=pcm', 'A_PCM/FLOAT/IEEE', 'audio/webm'],
        ['video/x-matroska;codecs=avc1', 'V_MPEG4/ISO/AVC', 'video/webm'],
        ['video/webm;codecs=h264', 'V_MPEG4/ISO/AVC', 'video/webm'],
        ['audio/matroska', 'A_OPUS', 'audio/webm'],
      ] as const) {
        const { status, json } = await upload(tenant, {
          bytes: matroska(codec, sent.startsWith('video')),
          type: sent,
          name: 'recording',
        });
        t.match(
          { status, json },
          { status: 200, json: { type: stored.slice(0, 5), mimeType: stored, durationMs: 2_500 } },
          sent,
        );
      }
      for (const codec of ['V_MS/VFW/FOURCC', 'A_AC3', 'A_OPUSX'])
        await refused(
          t,
          codec,
          upload(tenant, { bytes: matroska(codec), type: 'video/x-matroska' }),
          /The content is video\/matroska, not video\/webm as declared/,
        );
    },
  );

  await t.test(
    '200 | a part without a Content-Type is judged by its content, and by its name where the content does not tell',
    async (t) => {
      const headers = {
        ...(await tenant.userHeaders({ userId: 'ann' })),
        'Content-Type': 'multipart/form-data; boundary=b',
      };
      const post = (filename: string, bytes: Buffer) =>
        postForm(
          tenant,
          Buffer.concat([
            Buffer.from(`--b\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\n\r\n`),
            bytes,
            Buffer.from('\r\n--b--\r\n'),
          ]),
          headers,
        );
      for (const type of Object.keys(acceptedTypes)) {
        const bytes =
          type === 'audio/ogg'
            ? durationFile('opus.ogg').bytes
            : type === 'audio/mpeg'
              ? durationFile('mpeg2.mp3').bytes
              : await ofType(type);
        const { json } = await post('unnamed', bytes);
        t.notOk(json.error, type);
        t.notOk(contradicts(json.mimeType, type), `${type} is seen as ${json.mimeType}`);
      }
      t.match((await post('a.webm', await ofType('audio/webm'))).json, { type: 'video', mimeType: 'video/webm' });
      t.match((await post('A.M4A', await ofType('audio/mp4'))).json, { type: 'audio', mimeType: 'audio/mp4' });
      t.match(
        await post('p.jpg', await ofType('image/png')),
        { status: 200, json: { type: 'image', mimeType: 'image/png', filename: 'p.jpg' } },
        'another content than the name says',
      );
      t.match(
        await post('sound.png', wav(1)),
        { status: 200, json: { type: 'audio', mimeType: 'audio/wav' } },
        'another media type than the name says',
      );
      t.match(
        await post('p.jpg', await ofType('video/webm')),
        { status: 200, json: { mimeType: 'video/webm' } },
        'a name that cannot be right does not choose between audio and video',
      );
      t.match(
        await post('a.mp3', Buffer.alloc(100, 1)),
        { status: 200, json: { mimeType: 'audio/mpeg' } },
        'the content does not tell',
      );
      await refused(t, 'HTML', post('p.jpg', Buffer.from('<!doctype html>')), /begins like HTML/);
      await refused(
        t,
        'a type that is not accepted',
        post('p.jpg', Buffer.from('%PDF-1.7 and more')),
        /^The content is application\/pdf, not image\/jpeg as its name or first bytes suggest$/,
      );
      for (const bytes of ['', 'x', 'only some text'])
        await refused(
          t,
          `'${bytes}'`,
          post('note', Buffer.from(bytes)),
          bytes === '' ? /Unsupported MIME type: none|empty/ : /Unsupported MIME type: none/,
        );
    },
  );

  await t.test('400 | the content contradicts the type that was declared', async (t) => {
    const png = await ofType('image/png');
    await refused(t, 'another image', upload(tenant, { bytes: png, type: 'image/jpeg' }), /The content is image\/png/);
    await refused(
      t,
      'an image as sound',
      upload(tenant, { bytes: png, type: 'audio/mpeg' }),
      /The content is image\/png/,
    );
    await refused(t, 'WAV as WebM', upload(tenant, { bytes: wav(1), type: 'audio/webm' }), /The content is audio\/wav/);
    await refused(
      t,
      'HTML',
      upload(tenant, { bytes: Buffer.from(' \n<!doctype html>'), type: 'audio/mpeg' }),
      /begins like HTML/,
    );
    await refused(
      t,
      'SVG',
      upload(tenant, { bytes: Buffer.from('\ufeff<svg/>'), type: 'image/png' }),
      /begins like HTML/,
    );
    await refused(
      t,
      'no image',
      upload(tenant, { bytes: Buffer.from('hello'), type: 'image/png' }),
      /cannot be decoded/,
    );
    await refused(
      t,
      'half an image',
      upload(tenant, { ...jpeg, bytes: jpeg.bytes.subarray(0, 900) }),
      /cannot be decoded/,
    );
    for (const [bytes, type] of [
      [webm(99, { video: true }), 'audio/webm'],
      [webm(99), 'video/webm'],
      [mp4('M4A'), 'audio/mp4'],
      [mp4('isom'), 'audio/mp4'],
      [mp4('qt'), 'video/mp4'],
    ] as const) {
      t.equal((await upload(tenant, { bytes, type })).status, 200, `${type}: no contradiction`);
    }
  });

  await t.test(
    '403 | the media type is disabled for this environment; `<Media type> uploads are disabled for this environment`',
    async (t) => {
      const strict = await service.tenant('strict', {
        media: { image: false, audio: false, video: false },
        maxFileSizeMb: 1,
      });
      const files: [label: string, type: string][] = [
        ['Image', 'image/png'],
        ['Audio', 'audio/ogg'],
        ['Video', 'video/mp4'],
      ];
      for (const [label, type] of files) {
        const { status, json } = await upload(strict, { bytes: Buffer.alloc(2 * MEGABYTE), type });
        t.equal(status, 403, 'before the size');
        t.strictSame(json, { error: `${label} uploads are disabled for this environment` });
      }
      t.equal((await upload(strict, { bytes: Buffer.alloc(9), type: 'text/plain' })).status, 400, 'after the type');
    },
  );

  await t.test(
    '413 | file exceeds maxFileSizeMb of the environment, default 10 MB; `File too large (max <N>MB)`',
    async (t) => {
      const sound = (size: number): TestFile => ({ bytes: Buffer.alloc(size, 1), type: 'audio/ogg' });
      t.equal((await upload(tenant, sound(10 * MEGABYTE))).status, 200);
      const { status, json, headers } = await upload(tenant, sound(10 * MEGABYTE + 1));
      t.equal(status, 413);
      t.strictSame(json, { error: 'File too large (max 10MB)' });
      t.equal(headers.get('x-error-code'), 'file_too_large');
      const small = await service.tenant('small', { maxFileSizeMb: 1 });
      t.strictSame((await upload(small, sound(MEGABYTE + 1))).json, { error: 'File too large (max 1MB)' });
      await updateEnvironment(service.ctx, small.environment.id, { settings: { maxFileSizeMb: 2 } });
      t.equal((await upload(small, sound(MEGABYTE + 1))).status, 200, 'a changed setting holds at once');
    },
  );

  await t.test('of a gigabyte against 10 MB hardly anything is read', async (t) => {
    const { status, body, sent } = await sendUntilAnswered(tenant, 1024 * MEGABYTE, 'video/mp4');
    t.equal(status, 413);
    t.strictSame(JSON.parse(body), { error: 'File too large (max 10MB)' });
    t.ok(sent < 32 * MEGABYTE, `${sent} bytes were sent`);
  });

  await t.test('an upload whose client goes away leaves nothing', async (t) => {
    const gone = await service.tenant('gone');
    await abandonUpload(gone, 500_000);
    const { blobs } = service.ctx;
    await until(() => readdirSync(join(service.dataDir, 'files', '.staging')).length === 0);
    t.notOk((await blobs?.environments())?.includes(gone.environment.id));
  });
});

t.test('Serving files', async (t) => {
  const { json: file } = await upload(tenant, jpeg);
  const path = pathOf(file);

  await t.test(
    'GET | {base_url}/files/:envId/:fileId | the file content, `Cache-Control: public, max-age=31536000, immutable`',
    async (t) => {
      const { status, headers, bytes } = await getFile(tenant, file.url);
      t.equal(status, 200);
      t.ok(bytes.equals(jpeg.bytes));
      const expected = {
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'X-Service-Key, X-Service-Token, Origin',
        'content-type': 'image/jpeg',
        'content-length': String(jpeg.bytes.length),
        'content-disposition': "inline; filename*=UTF-8''holiday.jpg",
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'cross-origin-resource-policy': 'cross-origin',
        'accept-ranges': 'bytes',
        'referrer-policy': 'no-referrer',
      };
      for (const [name, value] of Object.entries(expected)) t.equal(headers.get(name), value, name);
      t.match(headers.get('etag'), /^"[0-9a-f]{32}"$/);
      const { headers: same, bytes: none } = await getFile(tenant, path, {}, 'HEAD');
      t.equal(none.length, 0, 'HEAD has no body');
      for (const name of [...Object.keys(expected), 'etag'])
        t.equal(same.get(name), headers.get(name), `${name} to HEAD`);
    },
  );

  await t.test(
    'a name with a lone surrogate, which earlier versions have imported, is sent with U+FFFD in its place',
    async (t) => {
      const { json } = await upload(tenant, jpeg);
      const { store } = service.ctx;
      const partition = filesOf(tenant.environment.id);
      await store.transact(async (tx) => {
        const record = JSON.parse((await tx.get(partition, json.id)) ?? '') as StoredFile;
        tx.put(
          partition,
          json.id,
          JSON.stringify({ ...record, attachment: { ...record.attachment, filename: 'a\ud800.jpg' } }),
        );
      });
      for (const search of ['', '?thumb=1']) {
        const { status, headers } = await getFile(tenant, `${pathOf(json)}${search}`);
        t.equal(status, 200);
        t.match(headers.get('content-disposition'), "filename*=UTF-8''a%EF%BF%BD.");
      }
    },
  );

  await t.test('thumb=1 | the thumbnail version (JPEG, 200x200)', async (t) => {
    const { status, headers, bytes } = await getFile(tenant, file.thumbnailUrl ?? '');
    t.equal(status, 200);
    t.equal(headers.get('content-type'), 'image/jpeg');
    t.match(headers.get('etag'), /^"[0-9a-f]{32}-t"$/);
    t.same(await shape(bytes), { format: 'jpeg', width: 200, height: 200 });
    t.ok((await getFile(tenant, `${path}?thumb=0`)).bytes.equals(jpeg.bytes), 'only 1 asks for it');
    const { json: sound } = await upload(tenant, { bytes: wav(0.1), type: 'audio/wav' });
    t.equal((await getFile(tenant, `${pathOf(sound)}?thumb=1`)).status, 404, 'only images have one');
  });

  await t.test('thumbnails of every kind of picture, asked for at once', async (t) => {
    const animated = await animation(60, 50);
    const files: Record<string, TestFile> = {
      'animated GIF': { bytes: await animated.gif().toBuffer(), type: 'image/gif' },
      'animated WebP': { bytes: await animated.webp().toBuffer(), type: 'image/webp' },
      'CMYK JPEG': { bytes: await picture(60, 50).toColourspace('cmyk').jpeg().toBuffer(), type: 'image/jpeg' },
      '16-bit PNG': { bytes: await picture(60, 50, 4).toColourspace('rgb16').png().toBuffer(), type: 'image/png' },
      '1x1': { bytes: await picture(1, 1).png().toBuffer(), type: 'image/png' },
    };
    for (const [name, odd] of Object.entries(files)) {
      const { status, json } = await upload(tenant, odd);
      t.equal(status, 200, `${name} ${JSON.stringify(json)}`);
      t.same(
        await shape((await getFile(tenant, json.thumbnailUrl ?? '')).bytes),
        { format: 'jpeg', width: 200, height: 200 },
        name,
      );
    }
  });

  await t.test('401 | missing or invalid credentials', async (t) => {
    const { 'X-Service-Key': key = '', 'X-Service-Token': token = '' } = await tenant.userHeaders({ userId: 'ann' });
    const credentials: Record<string, string>[] = [
      { 'X-Service-Key': '', 'X-Service-Token': '' },
      { 'X-Service-Key': key, 'X-Service-Token': '' },
      { 'X-Service-Key': '', 'X-Service-Token': token },
      { 'X-Service-Key': key, 'X-Service-Token': 'x' },
      { 'X-Service-Key': '', 'X-Service-Token': '', Authorization: `Bearer ${tenant.secretKey}` },
    ];
    for (const headers of credentials) {
      const { status, bytes } = await getFile(tenant, path, headers);
      t.equal(status, 401);
      t.match(JSON.parse(bytes.toString()), { error: String });
    }
    const { headers } = await getFile(tenant, path);
    const cached = { 'X-Service-Token': 'x', 'If-None-Match': headers.get('etag') ?? '' };
    t.equal((await getFile(tenant, path, cached)).status, 401, 'before it says that nothing changed');
  });

  await t.test('403 | the authenticated environment does not match :envId', async (t) => {
    const other = await service.tenant('other');
    t.equal((await getFile(other, path)).status, 403);
    t.equal(
      (await getFile(other, `/files/${tenant.environment.id}/file_unknown`)).status,
      403,
      'whether it exists or not',
    );
    t.equal(
      (await getFile(other, `/files/${other.environment.id}/${file.id}`)).status,
      404,
      'nor can it be had as one’s own',
    );
  });

  await t.test('404 | the file does not exist', async (t) => {
    const { id } = tenant.environment;
    for (const name of ['file_0000000000000000000a', `${file.id}.thumb`, '..%2f..%2fstore', '%00', 'x']) {
      const { status, bytes } = await getFile(tenant, `/files/${id}/${name}`);
      t.equal(status, 404, name);
      t.match(JSON.parse(bytes.toString()), { error: String });
    }
    t.equal((await getFile(tenant, `/files/${id}`)).status, 404);
    t.equal((await getFile(tenant, path, {}, 'DELETE')).status, 404, 'no other method');
  });

  await t.test('a token that is confined to rooms gets only files of those', async (t) => {
    const { json: mine } = await upload(tenant, jpeg);
    const body = { userId: 'ann', body: 'x', attachmentIds: [mine.id] };
    t.equal((await tenant.request('POST', '/rooms/secret/threads', { body })).status, 201);
    t.equal(
      (await getFile(tenant, mine.url, await tenant.userHeaders({ userId: 'bob', rooms: ['public*'] }))).status,
      403,
    );
    t.equal(
      (await getFile(tenant, mine.url, await tenant.userHeaders({ userId: 'bob', rooms: ['secret'] }))).status,
      200,
    );
  });

  await t.test('the address is absolute, also behind a proxy, and as the operator says', async (t) => {
    const { json } = await upload(tenant, jpeg, {
      headers: { ...(await tenant.userHeaders({ userId: 'ann' })), 'X-Forwarded-Proto': 'https' },
    });
    t.ok(json.url.startsWith('http://'), 'a proxy that nobody trusts says nothing');
    const fixed = await startService(t, {
      flags: { publicUrl: 'https://comments.example.com/base', trustProxy: '127.0.0.1' },
    });
    const named = await fixed.tenant('named');
    t.match((await upload(named, jpeg)).json.url, /^https:\/\/comments\.example\.com\/base\/files\/env_\w+\/file_\w+$/);
    const proxied = await startService(t, { flags: { trustProxy: '127.0.0.1' } });
    const behind = await proxied.tenant('behind');
    const headers = { ...(await behind.userHeaders({ userId: 'ann' })), 'X-Forwarded-Proto': 'https' };
    t.match((await upload(behind, jpeg, { headers })).json.url, /^https:\/\/127\.0\.0\.1:\d+\/files\//);
  });
});

/** More than any file has, and than a number holds exactly. */
const HUGE = '99999999999999999999';

t.test('Conditions and ranges', async (t) => {
  const large: TestFile = {
    bytes: Buffer.from(Array.from({ length: 700_000 }, (_, i) => (i * 31) % 251)),
    type: 'audio/ogg',
  };
  for (const [name, sent] of [
    ['small', { ...large, bytes: large.bytes.subarray(0, 1000) }],
    ['large', large],
  ] as const) {
    await t.test(`of a ${name} file`, async (t) => {
      const { json } = await upload(tenant, sent);
      const size = sent.bytes.length;
      const etag = (await getFile(tenant, json.url)).headers.get('etag') ?? '';
      const get = (headers: Record<string, string>) => getFile(tenant, json.url, headers);

      for (const given of [etag, `"x", W/${etag}`, '*']) {
        const { status, bytes, headers } = await get({ 'If-None-Match': given });
        t.equal(status, 304, given);
        t.equal(bytes.length, 0);
        t.match(headers.get('cache-control'), 'immutable');
        t.equal(headers.get('etag'), etag);
      }
      t.equal((await get({ 'If-None-Match': '"other"' })).status, 200);

      const ranges: [range: string, start: number, end: number][] = [
        [`bytes=0-${HUGE}`, 0, size],
        [`bytes=-${HUGE}`, 0, size],
        ['bytes=0-99', 0, 100],
        ['bytes=100-', 100, size],
        ['bytes=-50', size - 50, size],
        [`bytes=0-${size * 2}`, 0, size],
        [`bytes=-${size * 2}`, 0, size],
        [`bytes=${size - 1}-${size - 1}`, size - 1, size],
      ];
      for (const [range, start, end] of ranges) {
        const { status, bytes, headers } = await get({ Range: range });
        t.equal(status, 206, range);
        t.equal(headers.get('content-range'), `bytes ${start}-${end - 1}/${size}`);
        t.ok(bytes.equals(sent.bytes.subarray(start, end)), `the bytes of ${range}`);
      }
      for (const range of [
        `bytes=${HUGE}-`,
        `bytes=${HUGE}-${HUGE}`,
        `bytes=${size}-`,
        `bytes=${size}-${size + 5}`,
        'bytes=-0',
      ]) {
        const { status, headers, bytes } = await get({ Range: range });
        t.equal(status, 416, range);
        t.equal(headers.get('content-range'), `bytes */${size}`);
        t.match(JSON.parse(bytes.toString()), { error: /Range/ });
      }
      for (const range of ['bytes=0-1,5-6', 'bytes=5-2', 'bytes=a-b', 'lines=1-2', 'bytes=-', 'bytes']) {
        const { status, bytes } = await get({ Range: range });
        t.equal(status, 200, range);
        t.equal(bytes.length, size);
      }
      t.equal((await get({ Range: 'bytes=0-1', 'If-Range': etag })).status, 206);
      t.equal((await get({ Range: 'bytes=0-1', 'If-Range': '"other"' })).status, 200);
      t.equal((await get({ Range: 'bytes=0-1', 'If-Range': `W/${etag}` })).status, 200, 'a weak tag does not do');
      t.equal((await get({ Range: 'bytes=0-1', 'If-Range': 'Fri, 02 Jan 2026 03:04:05 GMT' })).status, 200);
      t.equal((await get({ Range: 'bytes=0-1', 'If-None-Match': etag })).status, 304);
      const head = await getFile(tenant, json.url, { Range: 'bytes=0-1' }, 'HEAD');
      t.equal(head.status, 200, 'a range is for GET');
      t.equal(head.headers.get('content-length'), String(size));
    });
  }
});

t.test('Limits', async (t) => {
  await t.test('files have a window of their own, uploads count as requests', async (t) => {
    const limited = await startService(t, {
      flags: { 'rateLimit.exempt': '', 'rateLimit.perMinute': '3', 'rateLimit.files': '5' },
    });
    const tenant = await limited.tenant('limited');
    const { json, headers } = await upload(tenant, jpeg);
    t.equal(headers.get('ratelimit'), '"default";r=2;t=60');
    for (let left = 4; left >= 0; left--) {
      const answer = await getFile(tenant, json.url);
      t.equal(answer.status, 200);
      t.equal(answer.headers.get('ratelimit'), `"files";r=${left};t=60`);
    }
    const refused = await getFile(tenant, json.url);
    t.equal(refused.status, 429);
    t.equal(refused.headers.get('retry-after'), '60');
    t.equal((await upload(tenant, jpeg)).status, 200);
    t.equal((await upload(tenant, jpeg)).status, 200);
    t.equal((await upload(tenant, jpeg)).status, 429);
  });

  await t.test('allowedOrigins', async (t) => {
    const strict: Tenant = await service.tenant('origins', { allowedOrigins: ['https://app.example.com'] });
    const headers = await strict.userHeaders({ userId: 'ann' });
    const good = await upload(strict, jpeg, { headers: { ...headers, Origin: 'https://app.example.com' } });
    t.equal(good.headers.get('access-control-allow-origin'), 'https://app.example.com');
    const file = await getFile(strict, good.json.url, { Origin: 'https://app.example.com' });
    t.equal(file.headers.get('access-control-allow-origin'), 'https://app.example.com');
    t.equal(file.headers.get('vary'), 'X-Service-Key, X-Service-Token, Origin');
    t.equal((await getFile(strict, good.json.url, { Origin: 'https://evil.example.com' })).status, 403);
    const preflight = await fetch(good.json.url, {
      method: 'OPTIONS',
      headers: { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'GET' },
    });
    t.equal(preflight.status, 204);
    t.equal(preflight.headers.get('access-control-allow-methods'), 'GET, HEAD');
  });

  await t.test('a revoked publishable key opens nothing', async (t) => {
    const { json } = await upload(tenant, jpeg);
    const { value } = await createKey(service.ctx, tenant.environment, { kind: 'publishable', expiresInSeconds: 1 });
    t.equal((await getFile(tenant, json.url, { 'X-Service-Key': value })).status, 200);
    service.clock.advance(1001);
    t.equal((await getFile(tenant, json.url, { 'X-Service-Key': value })).status, 401);
  });
});
