import { hash } from 'node:crypto';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { LocalBlobs } from '../../src/adapters/localfiles/blobs.ts';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import type { Context } from '../../src/domain/context.ts';
import { deleteEnvironment, listEnvironments } from '../../src/domain/environments/environments.ts';
import { Import } from '../../src/domain/transfer/import.ts';
import { defaultSettings } from '../../src/model/environments/environment.ts';
import type { Media } from '../../src/ports/media.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { createWorld } from './world.ts';

const AT = '2026-01-02T03:04:05.678Z';
const BYTES = Buffer.from('the content of a file');
const PK = `pk_mine_${'x'.repeat(43)}`;
const SURROGATE = '\ud83d';

const media: Media = {
  sniff: async () => undefined,
  image: async () => null,
  duration: async () => 0,
  thumbnail: async () => null,
};

const attachment = {
  id: 'file_1',
  type: 'image',
  filename: 'a ü.png',
  mimeType: 'image/png',
  sizeBytes: BYTES.length,
  url: 'https://old.example.com/base/files/env_mine/file_1',
  thumbnailUrl: 'https://old.example.com/base/files/env_mine/file_1?thumb=1',
  width: 3,
  height: 2,
};
const reaction = {
  id: 're_1_c1',
  reactionId: 're_1_c1',
  commentId: 'c1',
  threadId: 't1',
  userId: 'ann',
  emoji: '👍',
  createdAt: AT,
};

/** A complete environment, with one line of each type. */
function goodLines() {
  const times = { createdAt: AT, updatedAt: AT };
  return {
    environment: {
      data: {
        id: 'env_mine',
        slug: 'mine',
        name: 'Mine',
        disabled: false,
        settings: { ...defaultSettings, allowedOrigins: ['https://app.example.com'] },
        ...times,
      },
    },
    'signing-key': { data: { kid: 'kid_1', kind: 'secret', alg: 'HS256', secret: 's'.repeat(32), createdAt: AT } },
    key: {
      data: {
        id: 'key_1',
        environmentId: 'env_mine',
        kind: 'secret',
        hash: 'h'.repeat(43),
        name: 'ci',
        preview: 'sk_mine_abcd…',
        scope: 'full',
        rooms: null,
        rateLimit: 0,
        createdAt: AT,
        expiresAt: null,
        revokedAt: null,
      },
    },
    'key 2': {
      data: {
        id: 'key_2',
        environmentId: 'env_mine',
        kind: 'publishable',
        hash: hash('sha256', PK, 'base64url'),
        name: '',
        preview: 'pk_mine_xxxx…',
        value: PK,
        createdAt: AT,
        expiresAt: null,
        revokedAt: null,
      },
    },
    user: {
      data: {
        id: 'ann',
        userId: 'ann',
        name: 'Ann',
        avatarUrl: 'https://example.com/a.png',
        email: 'ann@example.com',
        kind: 'user',
        metadata: { startsAt: 'tomorrow' },
        ...times,
        firstSeenAt: null,
        lastSeenAt: null,
      },
    },
    file: {
      data: {
        attachment: { ...attachment },
        uploadedBy: 'ann',
        commentId: 'c1',
        sha256: hash('sha256', BYTES, 'hex'),
        createdAt: AT,
      },
    },
    chunk: { data: BYTES.toString('base64') },
    state: {
      roomId: 'room',
      data: {
        version: 1,
        sizeBytes: BYTES.length,
        digest: hash('sha256', BYTES, 'hex').slice(0, 16),
        merges: 0,
        updatedAt: AT,
        updatedBy: 'ann',
      },
      bytes: BYTES.toString('base64'),
    },
    room: { data: { roomId: 'room', metadata: {}, ...times }, lastActivityAt: AT },
    thread: {
      data: {
        id: 't1',
        roomId: 'room',
        resolved: false,
        position: { x: 0, y: 1, selector: '#a' },
        metadata: {},
        userId: 'ann',
        ...times,
        resolvedAt: null,
        resolvedBy: null,
      },
      lastActivityAt: AT,
    },
    comment: {
      data: {
        id: 'c1',
        threadId: 't1',
        userId: 'ann',
        body: 'Hello',
        mentions: ['bob'],
        attachments: [{ ...attachment }],
        reactions: [{ ...reaction }],
        metadata: {},
        createdAt: AT,
        editedAt: null,
      },
    },
    end: { lines: 11 },
  };
}

type Lines = ReturnType<typeof goodLines>;

function rendered(lines: Lines): string[] {
  return [
    '{"type":"export","format":1}',
    ...Object.entries(lines).map(([type, fields]) => JSON.stringify({ type: type.split(' ')[0], ...fields })),
  ];
}

async function createContext(t: Test): Promise<Context> {
  const { ctx } = await createWorld(t);
  for (const { id } of await listEnvironments(ctx)) await deleteEnvironment(ctx, id);
  return { ...ctx, media, blobs: new LocalBlobs({ path: join(tempFolder(t), 'files'), minFreeBytes: 0 }) };
}

async function take(ctx: Context, lines: readonly string[]): Promise<void> {
  const work = new Import(ctx, { skipExisting: false });
  try {
    for (const line of lines) await work.add(line);
    work.finish();
  } catch (error) {
    await work.abandon();
    throw error;
  }
}

t.test('a complete environment is imported', async (t) => {
  const ctx = await createContext(t);
  await take(ctx, rendered(goodLines()));
  t.match(await listEnvironments(ctx), [{ id: 'env_mine' }]);
});

t.test('a file whose content contradicts its declared type is refused, as an upload is', async (t) => {
  const gif = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
  const webp = Buffer.from('UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==', 'base64');
  const contents: readonly (readonly [content: Buffer, detected: string])[] = [
    [gif, 'The content is image/gif, not image/png as declared'],
    [webp, 'The content is image/webp, not image/png as declared'],
    [Buffer.from('%PDF-1.7\n%âãÏÓ\n'), 'The content is application/pdf, not image/png as declared'],
    [
      Buffer.from('\ufeff \n<!doctype html><script>alert(1)</script>'),
      'The content is not image/png: it begins like HTML or XML',
    ],
  ];
  for (const [content, reason] of contents) {
    const ctx = { ...(await createContext(t)), media: new LocalMedia() };
    const lines = goodLines();
    lines.file.data.sha256 = hash('sha256', content, 'hex');
    lines.file.data.attachment.sizeBytes = content.length;
    lines.chunk.data = content.toString('base64');
    const at = rendered(lines).findIndex((line) => line.startsWith('{"type":"file"')) + 1;
    await t.rejects(
      take(ctx, rendered(lines)),
      { code: 'unsupported_media', line: at, message: `data.attachment.mimeType is wrong. ${reason}` },
      reason,
    );
    t.strictSame(await listEnvironments(ctx), []);
    t.equal(await ctx.blobs?.sweepStaged(0, true), 0, 'nothing is staged');
    t.strictSame(await ctx.blobs?.environments(), []);
  }
});

t.test('a file whose chunks are not its content is refused with its line', async (t) => {
  const ctx = await createContext(t);
  const lines = goodLines();
  lines.chunk.data = Buffer.from('other').toString('base64');
  await t.rejects(take(ctx, rendered(lines)), {
    code: 'invalid_request',
    line: 7,
    message: 'data.attachment.sizeBytes and data.sha256 must be those of the chunks',
  });
});

/** Sets a value at a path such as `comment.data.reactions.0.emoji`; undefined removes it. */
function changed(path: string, value: unknown): Lines {
  const lines = structuredClone(goodLines());
  const names = path.split('.');
  const last = names.pop() ?? '';
  const place = names.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], lines) as Record<
    string,
    unknown
  >;
  if (value === undefined) delete place[last];
  else Object.defineProperty(place, last, { value, enumerable: true, configurable: true });
  return lines;
}

const long = 'x'.repeat(10_001);
const manyKeys = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, 1]));

/** Invalid values, with their path and the expected message. */
const faults: readonly (readonly [path: string, value: unknown, message: RegExp])[] = [
  ['environment.data.name', '', /data\.name must be 1 to 128 characters/],
  ['environment.data.slug', 'Mine!', /data\.slug must be 1 to 63 lower-case/],
  [
    'environment.data.settings.allowedOrigins',
    ['https://app.example.com/path'],
    /data\.settings\.allowedOrigins must hold origins such as/,
  ],
  [
    'environment.data.settings.allowedOrigins',
    ['https://a.example.com\r\nX-Evil: 1'],
    /data\.settings\.allowedOrigins must hold origins/,
  ],
  [
    'environment.data.settings.allowedOrigins',
    ['*'],
    /data\.settings\.allowedOrigins must hold whole origins: a wildcard matches nothing/,
  ],
  ['environment.data.settings.maxFileSizeMb', 20_000, /data\.settings\.maxFileSizeMb must be between 1 and 10240/],
  ['environment.data.settings.maxP2pStateMb', 101, /data\.settings\.maxP2pStateMb must be between 1 and 100/],
  ['environment.data.settings.crdt', 'other', /data\.settings\.crdt must be one of opaque, yjs/],
  [
    'environment.data.settings.limits',
    { bodyLength: 2_000_000 },
    /data\.settings\.limits\.bodyLength must be between 1 and 1000000/,
  ],
  ['environment.data.settings.jwtIssuer', SURROGATE, /data\.settings\.jwtIssuer must be well-formed Unicode/],
  ['environment.data.createdAt', '2026-13-02T03:04:05.678Z', /data\.createdAt must be a time/],
  ['signing-key.data.secret', 'short', /data\.secret must have at least 32 bytes/],
  ['signing-key.data.secret', undefined, /data\.secret must be a string/],
  ['signing-key.data.alg', 'none', /data\.alg must be HS256 for a secret/],
  [
    'signing-key.data',
    { kid: 'k', kind: 'jwks', alg: 'ES256', url: 'https://127.0.0.1/jwks', createdAt: AT },
    /data\.url must not lead to a private or local address/,
  ],
  [
    'signing-key.data',
    { kid: 'k', kind: 'public', alg: 'ES256', key: 'no key', createdAt: AT },
    /data\.key must be a public key/,
  ],
  [
    'signing-key.data',
    { kid: 'k', kind: 'other', alg: 'ES256', url: 'https://example.com', createdAt: AT },
    /data\.kind must be one of secret, public, jwks/,
  ],
  ['key.data.scope', 'root', /data\.scope must be one of full, read, moderate/],
  ['key.data.scope', undefined, /data\.scope, rooms and rateLimit .* are required/],
  ['key.data.rooms', '', /data\.rooms must be a string of 1 to 513 characters or null/],
  ['key.data.rateLimit', -1, /data\.rateLimit must be/],
  ['key.data.hash', 'short', /data\.hash must be a SHA-256 as base64url/],
  ['key.data.name', 'x'.repeat(129), /data\.name must be at most 128 characters/],
  ['key.data.value', 'sk_x', /data\.value must be absent/],
  ['key 2.data.value', 'pk_other', /data\.value must begin with pk_ and have the SHA-256/],
  ['user.data.name', 'x'.repeat(257), /data\.name must be 1 to 256 characters/],
  ['user.data.name', `a${SURROGATE}`, /data\.name must be well-formed Unicode, without lone surrogates/],
  ['user.data.name', 'Ann\r\nBcc: eve@example.com', /data\.name must not contain line breaks or control characters/],
  ['user.data.avatarUrl', 'javascript:alert(1)', /data\.avatarUrl must be an http or https address/],
  ['user.data.kind', 'root', /data\.kind must be one of user, bot/],
  ['user.data.email', 'no\r\nBcc: eve@example.com', /data\.email must be an email address/],
  ['user.data.email', 'ann@example.com,eve@example.com', /data\.email must be an email address/],
  ['user.data.email', 'Eve<eve@example.com>', /data\.email must be an email address/],
  ['user.data.email', 'nobody', /data\.email must be an email address/],
  ['user.data.email', 'x'.repeat(321), /data\.email must be at most 320 characters/],
  ['user.data.metadata', manyKeys, /data\.metadata must hold at most 50 keys/],
  ['user.data.metadata', { k: 'x'.repeat(4_001) }, /data\.metadata\.k must be at most 4000 characters/],
  ['user.data.metadata', { [SURROGATE]: 1 }, /Keys of data\.metadata must be well-formed Unicode/],
  ['user.data.metadata', JSON.parse('{"__proto__":1}'), /data\.metadata must not have the key __proto__/],
  ['file.data.attachment.mimeType', 'text/html', /data\.attachment\.mimeType must be one of image\/jpeg, /],
  [
    'file.data.attachment.mimeType',
    'text/html\r\nX-Evil: 1',
    /data\.attachment\.mimeType must be one of image\/jpeg, /,
  ],
  ['file.data.attachment.mimeType', '__proto__', /data\.attachment\.mimeType must be one of image\/jpeg, /],
  ['file.data.attachment.type', 'video', /data\.attachment\.type must be image/],
  ['file.data.attachment.filename', `a${SURROGATE}.png`, /data\.attachment\.filename must be well-formed Unicode/],
  [
    'file.data.attachment.filename',
    '../a.png',
    /data\.attachment\.filename must be 1 to 255 bytes of UTF-8 without slashes/,
  ],
  ['file.data.attachment.filename', 'a\r\nX-Evil: 1', /data\.attachment\.filename must be 1 to 255 bytes/],
  ['file.data.attachment.filename', 'ü'.repeat(128), /data\.attachment\.filename must be 1 to 255 bytes/],
  [
    'file.data.attachment.url',
    'javascript:alert(1)//files/env_mine/file_1',
    /data\.attachment\.url must be \/files\/env_mine\/file_1, alone or after/,
  ],
  ['file.data.attachment.url', 'https://evil.example.com/x.png', /data\.attachment\.url must be/],
  [
    'file.data.attachment.thumbnailUrl',
    'https://evil.example.com/x.png',
    /data\.attachment\.thumbnailUrl must be the url followed by \?thumb=1/,
  ],
  ['file.data.attachment.width', '"><script>', /data\.attachment\.width must be a number of at least 0/],
  ['file.data.uploadedBy', 'a\u0000b', /data\.uploadedBy must not contain control characters/],
  ['file.data.noThumbnail', 'yes', /data\.noThumbnail must be true/],
  ['state.roomId', `r${SURROGATE}`, /^roomId must be well-formed Unicode/],
  ['state.roomId', 'r\n', /^roomId must not contain control characters/],
  ['state.bytes', '!!!', /^bytes must be canonical base64/],
  ['state.bytes', 'AAAA', /sizeBytes and digest must be those of the bytes/],
  ['room.data.roomId', 'r\u0007', /^roomId must not contain control characters/],
  ['room.data.metadata', { ['x'.repeat(41)]: 1 }, /Keys of metadata must be 1 to 40 characters/],
  ['thread.data.userId', '\u007f', /data\.userId must not contain control characters/],
  ['thread.data.position', { x: 2, y: 0 }, /data\.position/],
  ['thread.data.position.selector', 'x'.repeat(2_049), /data\.position\.selector must be at most 2048 characters/],
  ['thread.data.resolvedBy', '\u0001', /data\.resolvedBy must not contain control characters/],
  ['comment.data.body', long, /data\.body must be 1 to 10000 characters/],
  ['comment.data.body', SURROGATE, /data\.body must be well-formed Unicode/],
  [
    'comment.data.mentions',
    Array.from({ length: 51 }, (_, i) => `u${i}`),
    /data\.mentions must hold at most 50 user ids/,
  ],
  ['comment.data.mentions', ['\n'], /data\.mentions\[0\] must not contain control characters/],
  ['comment.data.attachments.0.mimeType', 'image/svg+xml', /data\.attachments\[0\]\.mimeType must be one of/],
  ['comment.data.attachments', Array.from({ length: 11 }, () => attachment), /data\.attachments must hold at most 10/],
  ['comment.data.reactions.0.emoji', '<b>', /data\.reactions\[0\]\.emoji must be one emoji/],
  ['comment.data.reactions.0.id', 're_1_other', /data\.reactions\[0\]\.id and reactionId must be re_/],
  ['comment.data.reactions.0.threadId', 'other', /data\.reactions\[0\] must name the comment and the thread/],
  [
    'comment.data.reactions',
    Array.from({ length: 1_001 }, (_, i) => ({ ...reaction, userId: `u${i}` })),
    /A comment takes at most 1000 reactions/,
  ],
  ['comment.data.metadata', manyKeys, /data\.metadata must hold at most 50 keys/],
];

t.test('what the API would refuse is refused with the field and its bound, and nothing is stored', async (t) => {
  const ctx = await createContext(t);
  for (const [path, value, message] of faults) {
    await t.rejects(
      take(ctx, rendered(changed(path, value))),
      { code: 'invalid_request', message },
      `${path} ${JSON.stringify(value)?.slice(0, 60)}`,
    );
    t.strictSame(await ctx.store.partitions('e/'), []);
    t.strictSame(await ctx.blobs?.environments(), []);
  }
  const deep = `{"type":"user","data":${'['.repeat(100_000)}`;
  await t.rejects(take(ctx, [...rendered(goodLines()).slice(0, 2), deep]), {
    code: 'invalid_request',
    message: /must not nest arrays and objects more than 64 levels deep/,
  });
  t.strictSame(await listEnvironments(ctx), []);
});

t.test('two lines for one record are refused: counts would contain it twice', async (t) => {
  const ctx = await createContext(t);
  for (const type of ['signing-key', 'key', 'user', 'state', 'room', 'thread', 'comment', 'file']) {
    const lines = rendered(goodLines());
    const at = lines.findIndex((line) => line.startsWith(`{"type":"${type}"`));
    // The chunk of a file follows its line.
    const repeated = lines.toSpliced(type === 'file' ? at + 2 : at + 1, 0, lines[at] ?? '');
    await t.rejects(
      take(ctx, repeated),
      { code: 'invalid_request', message: `the environment has another line of the type ${type} for ` },
      type,
    );
    t.strictSame(await ctx.store.partitions('e/'), [], type);
  }
  const chosen = rendered(goodLines());
  const [thread = '', comment = ''] = chosen.slice(-3, -1);
  const elsewhere = [thread, comment].map((line) => line.replaceAll('"t1"', '"t2"'));
  await t.rejects(
    take(ctx, chosen.toSpliced(-1, 0, ...elsewhere)),
    { message: 'the environment has another line of the type comment for c1' },
    'an id that a client chose, in another thread',
  );
});

t.test('an attachment of a comment has the media type of its file', async (t) => {
  const ctx = await createContext(t);
  await t.rejects(take(ctx, rendered(changed('comment.data.attachments.0.mimeType', 'image/gif'))), {
    code: 'invalid_request',
    message: /data\.attachments\[0\]\.mimeType must be image\/png, as in the line of the file/,
  });
  await take(
    ctx,
    rendered(changed('comment.data.attachments.0.id', 'file_2')).map((line) =>
      line.replaceAll(
        '/files/env_mine/file_1',
        line.includes('"comment"') ? '/files/env_mine/file_2' : '/files/env_mine/file_1',
      ),
    ),
  );
  t.pass('the export of a server that has lost a file has no line for it');
});

t.test('content from before limits were lowered is imported', async (t) => {
  const ctx = await createContext(t);
  const raised = changed('comment.data.body', long);
  raised.environment.data.settings.limits = { bodyLength: 20_000 };
  await take(ctx, rendered(raised));
  await deleteEnvironment(ctx, 'env_mine');
  const lowered = changed('comment.data.body', 'x'.repeat(9_000));
  lowered.environment.data.settings.limits = { bodyLength: 10 };
  await take(ctx, rendered(lowered));
});

t.test('a key of another environment is refused', async (t) => {
  const ctx = await createContext(t);
  await take(ctx, rendered(goodLines()));
  const copy = rendered(goodLines()).map((line) =>
    line.replaceAll('env_mine', 'env_copy').replaceAll('"slug":"mine"', '"slug":"copy"'),
  );
  await t.rejects(take(ctx, copy), { code: 'id_taken', message: /The key key_1 is a key of another environment/ });
  t.match(await listEnvironments(ctx), [{ id: 'env_mine' }]);
});
