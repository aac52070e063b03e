import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import t from 'tap';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import { addSigningKey, listSigningKeys, removeSigningKey } from '../../src/domain/access/signing-keys.ts';
import { authenticateUser, signUserToken, verifyUserToken } from '../../src/domain/access/tokens.ts';
import { createWorld, START } from './world.ts';

const SECRET = 'a secret of at least thirty-two bytes';
const now = Math.floor(START / 1000);
const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token assembled by hand, so that it can be invalid in any way. */
function token(
  payload: object,
  header: object = { alg: 'HS256', kid: 'k1' },
  secret: string | Buffer = SECRET,
): string {
  const signed = `${base64(header)}.${base64(payload)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

function signedWith(key: KeyObject, header: object, payload: object): string {
  const signed = `${base64(header)}.${base64(payload)}`;
  return `${signed}.${sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

const good = { sub: 'ann', exp: now + 3600, iat: now };

await t.test('a valid token gives its claims', async (t) => {
  const { ctx, environment } = await createWorld(t);
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  t.same(await verifyUserToken(ctx, environment, token(good)), {
    userId: 'ann',
    role: 'member',
    rooms: null,
    confinedKeyId: null,
    name: undefined,
    avatarUrl: undefined,
    email: undefined,
    metadata: undefined,
    expiresAt: (now + 3600) * 1000,
    issuedAt: now * 1000,
    signedBy: 'k1 2026-01-02T03:04:05.678Z',
  });
  const full = {
    ...good,
    name: 'Ann',
    picture: 'https://a.example/p.png',
    email: 'a@b',
    role: 'viewer',
    rooms: ['a', 'b/*'],
    metadata: { a: 1 },
    aud: ['x', 'dev'],
  };
  t.match(await verifyUserToken(ctx, environment, token(full)), {
    role: 'viewer',
    rooms: ['a', 'b/*'],
    name: 'Ann',
    avatarUrl: full.picture,
    email: 'a@b',
    metadata: { a: 1 },
  });
  t.match(
    await verifyUserToken(ctx, environment, token({ ...good, avatar: full.picture, name: null, aud: environment.id })),
    { avatarUrl: full.picture, name: undefined },
  );
  t.match(
    await verifyUserToken(ctx, environment, token(good, { alg: 'HS256' })),
    { userId: 'ann' },
    'no kid is needed with one key',
  );
});

await t.test('an invalid token is refused with the reason', async (t) => {
  const { ctx, environment } = await createWorld(t);
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  const { sub: _, ...nobody } = good;
  const { exp: __, ...endless } = good;
  const cases: [string, string, RegExp][] = [
    ['no JWT', 'abc', /not a JWT/],
    ['empty', '', /not a JWT/],
    ['another secret', token(good, undefined, 'x'.repeat(32)), /signature does not match/],
    ['a changed payload', token(good).replace(/\.[^.]+\./, `.${base64({ ...good, sub: 'bob' })}.`), /signature/],
    ['another kid', token(good, { alg: 'HS256', kid: 'k2' }), /kid/],
    ['a kid that is no text', token(good, { alg: 'HS256', kid: 7 }), /kid must be a string/],
    ['no algorithm', `${base64({ alg: 'none', kid: 'k1' })}.${base64(good)}.`, /./],
    ['another algorithm', token(good, { alg: 'HS512', kid: 'k1' }), /alg/],
    ['no sub', token(nobody), /sub/],
    ['no exp', token(endless), /exp/],
    ['an empty sub', token({ ...good, sub: '' }), /sub/],
    ['a long sub', token({ ...good, sub: 'x'.repeat(129) }), /sub must be 1 to 128/],
    ['a sub with a control character', token({ ...good, sub: 'a\n' }), /sub/],
    ['another audience', token({ ...good, aud: 'prod' }), /audience/],
    ['a life too long', token({ ...good, exp: now + 86_401 }), /lifetime \(exp - iat\) must be at most 86400 seconds/],
    [
      'a life too long from now, without iat',
      token({ sub: 'ann', exp: now + 86_460 }),
      /expiry \(exp\) must be at most 86400 seconds from now, not 86460/,
    ],
    [
      'an iat in the future',
      token({ ...good, iat: now + 86_400, exp: now + 172_800 }),
      /must be at most 86400 seconds from now/,
    ],
    ['not yet valid', token({ ...good, nbf: now + 31 }), /nbf/],
    ['an unknown role', token({ ...good, role: 'admin' }), /role must be one of viewer, member, moderator/],
    ['rooms that are no list', token({ ...good, rooms: 'a' }), /rooms must be an array/],
    ['a picture that is a script', token({ ...good, picture: 'javascript:x' }), /picture/],
    ['metadata too large', token({ ...good, metadata: { a: 'x'.repeat(3000), b: 'x'.repeat(3000) } }), /4096 bytes/],
    ['a token too long', token({ ...good, x: 'x'.repeat(9000) }), /8192/],
  ];
  for (const [name, text, message] of cases)
    await t.rejects(verifyUserToken(ctx, environment, text), { code: 'invalid_token', message }, name);
});

await t.test('a token is valid until thirty seconds after its expiry, cached or not', async (t) => {
  const { ctx, peer, environment, clock } = await createWorld(t);
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  const text = token({ ...good, exp: now + 10 });
  const expired = { code: 'token_expired', message: 'The token has expired' };
  clock.set((now + 40) * 1000 - 1);
  t.match(await verifyUserToken(ctx, environment, text), { expiresAt: (now + 10) * 1000 });
  clock.advance(1);
  await t.rejects(verifyUserToken(ctx, environment, text), expired);
  await t.rejects(verifyUserToken(peer, environment, text), expired);
});

await t.test('with several keys a token must name its key, and a removed key stops working immediately', async (t) => {
  const { ctx, peer, environment } = await createWorld(t);
  await t.rejects(verifyUserToken(ctx, environment, token(good)), { code: 'invalid_token', message: /no signing key/ });
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  const other = await addSigningKey(ctx, environment, { kind: 'secret' });
  t.match(other, { kind: 'secret', alg: 'HS256', secret: /^[0-9A-Za-z]{43}$/ });
  await t.rejects(verifyUserToken(ctx, environment, token(good, { alg: 'HS256' })), {
    message: /names no key \(kid\)/,
  });
  await t.resolves(verifyUserToken(peer, environment, token(good)));
  await removeSigningKey(ctx, environment, 'k1');
  for (const worker of [ctx, peer])
    await t.rejects(verifyUserToken(worker, environment, token(good)), { code: 'invalid_token' });
  await t.rejects(removeSigningKey(ctx, environment, 'k1'), { code: 'key_not_found' });
  t.same(
    (await listSigningKeys(ctx, environment)).map(({ kid }) => kid),
    [other.kid],
  );
});

await t.test('an issuer that the environment requires is required', async (t) => {
  const { ctx, environment } = await createWorld(t);
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  const strict = await updateEnvironment(ctx, environment.id, { settings: { jwtIssuer: 'https://id.example' } });
  await t.rejects(verifyUserToken(ctx, strict, token(good)), { message: /iss/ });
  await t.rejects(verifyUserToken(ctx, strict, token({ ...good, iss: 'x' })), { message: /iss/ });
  await t.resolves(verifyUserToken(ctx, strict, token({ ...good, iss: 'https://id.example' })));
});

await t.test('public keys verify only with their own algorithm and an audience', async (t) => {
  const { ctx, environment } = await createWorld(t);
  const pairs = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    EdDSA: generateKeyPairSync('ed25519'),
  };
  for (const [name, { publicKey, privateKey }] of Object.entries(pairs)) {
    const alg = name as keyof typeof pairs;
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const key = alg === 'ES256' ? JSON.stringify(publicKey.export({ format: 'jwk' })) : pem;
    t.match(await addSigningKey(ctx, environment, { kind: 'public', alg, key, kid: alg }), {
      kind: 'public',
      alg,
      key: pem,
    });
    const header = { alg, kid: alg };
    await t.resolves(verifyUserToken(ctx, environment, signedWith(privateKey, header, { ...good, aud: 'dev' })), alg);
    await t.rejects(
      verifyUserToken(ctx, environment, signedWith(privateKey, header, good)),
      { message: /audience/ },
      `${alg} without audience`,
    );
    const confused = token({ ...good, aud: 'dev' }, { alg: 'HS256', kid: alg }, Buffer.from(pem));
    await t.rejects(
      verifyUserToken(ctx, environment, confused),
      { code: 'invalid_token' },
      `${alg} confused with HS256`,
    );
  }
});

await t.test('a key set verifies the tokens of its provider, and its failures refuse the token', async (t) => {
  const world = await createWorld(t);
  const { environment } = world;
  const provider = generateKeyPairSync('rsa', { modulusLength: 2048 });
  let fails = true;
  const fetch = async (): Promise<Response> => {
    if (fails) throw new Error('connect ECONNREFUSED 10.0.0.1');
    return Response.json({ keys: [{ ...provider.publicKey.export({ format: 'jwk' }), kid: 'theirs', alg: 'RS256' }] });
  };
  const ctx = { ...world.ctx, fetch };
  await addSigningKey(ctx, environment, { kind: 'jwks', alg: 'RS256', url: 'https://id.example/jwks', kid: 'ours' });
  const signed = (payload: object, kid = 'theirs') => signedWith(provider.privateKey, { alg: 'RS256', kid }, payload);
  await t.rejects(verifyUserToken(ctx, environment, signed({ ...good, aud: 'dev' })), {
    code: 'invalid_token',
    message: 'Invalid token: the key set (JWKS) of the environment can’t be read',
  });
  fails = false;
  t.match(await verifyUserToken(ctx, environment, signed({ ...good, aud: 'dev' })), { userId: 'ann' });
  await t.rejects(verifyUserToken(ctx, environment, signed(good)), { code: 'invalid_token', message: /audience/ });
  await t.rejects(verifyUserToken(ctx, environment, signed({ ...good, aud: 'dev' }, 'unknown')), {
    code: 'invalid_token',
  });
});

await t.test('a key set finds new keys of its provider after the clock was set back', async (t) => {
  const { ctx: base, clock, environment } = await createWorld(t);
  const first = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const second = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const published = [{ ...first.publicKey.export({ format: 'jwk' }), kid: 'first', alg: 'RS256' }];
  const ctx = { ...base, fetch: async (): Promise<Response> => Response.json({ keys: published }) };
  await addSigningKey(ctx, environment, { kind: 'jwks', alg: 'RS256', url: 'https://id.example/jwks', kid: 'ours' });
  const payload = { ...good, aud: 'dev' };
  await t.resolves(
    verifyUserToken(ctx, environment, signedWith(first.privateKey, { alg: 'RS256', kid: 'first' }, payload)),
  );
  published.push({ ...second.publicKey.export({ format: 'jwk' }), kid: 'second', alg: 'RS256' });
  const rotated = signedWith(second.privateKey, { alg: 'RS256', kid: 'second' }, payload);
  await t.rejects(
    verifyUserToken(ctx, environment, rotated),
    { code: 'invalid_token' },
    'the key set was loaded a moment ago',
  );
  clock.set(clock.now() - 3_600_000);
  await t.resolves(verifyUserToken(ctx, environment, rotated));
});

await t.test('invalid signing keys are refused when they are registered', async (t) => {
  const { ctx, environment } = await createWorld(t);
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const ed = generateKeyPairSync('ed25519');
  const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
  const add = (input: Parameters<typeof addSigningKey>[2]) => addSigningKey(ctx, environment, input);
  await t.rejects(add({ kind: 'secret', secret: 'x'.repeat(31) }), { message: 'secret must have at least 32 bytes' });
  await t.resolves(add({ kind: 'secret', secret: 'ü'.repeat(16) }));
  await t.rejects(add({ kind: 'secret', kid: 'a b' }), { message: /^kid must be/ });
  await t.rejects(add({ kind: 'public', alg: 'RS256', key: pem(rsa.publicKey) }), { message: /at least 2048 bits/ });
  await t.rejects(add({ kind: 'public', alg: 'ES256', key: pem(ed.publicKey) }), { message: /P-256/ });
  await t.rejects(add({ kind: 'public', alg: 'EdDSA', key: 'nonsense' }), { message: /public key as PEM/ });
  const privatePem = ed.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  await t.rejects(add({ kind: 'public', alg: 'EdDSA', key: privatePem }), { message: /private key must never/ });
  await t.rejects(add({ kind: 'public', alg: 'EdDSA', key: JSON.stringify(ed.privateKey.export({ format: 'jwk' })) }), {
    message: /private key must never/,
  });
  for (const url of [
    'http://id.example/jwks',
    'nonsense',
    'https://u:p@id.example/',
    'https://localhost/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://0x7f.1/',
  ]) {
    await t.rejects(add({ kind: 'jwks', alg: 'RS256', url }), { message: /^url must/ }, url);
  }
  await add({ kind: 'jwks', alg: 'RS256', url: 'https://id.example/jwks', kid: 'provider' });
  await t.rejects(add({ kind: 'jwks', alg: 'RS256', url: 'https://other.example/jwks' }), {
    code: 'id_taken',
    message: /JWKS address already/,
  });
  await t.rejects(add({ kind: 'secret', kid: 'provider' }), { code: 'id_taken' });
  t.equal(createPublicKey(pem(ed.publicKey)).asymmetricKeyType, 'ed25519');
});

await t.test('a signed token verifies, and its bounds are checked', async (t) => {
  const { ctx, environment } = await createWorld(t);
  const issue = (over: object = {}) => signUserToken(ctx, environment, { userId: 'ann', ttlSeconds: 60, ...over });
  await t.rejects(issue(), { message: /no signing secret/ });
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  const { token: text, expiresAt } = await issue({
    name: 'Ann',
    role: 'moderator',
    rooms: ['a'],
    avatarUrl: 'https://a.example/',
  });
  t.equal(expiresAt, new Date((now + 60) * 1000).toISOString());
  t.same(JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString()), {
    alg: 'HS256',
    kid: 'k1',
    typ: 'JWT',
  });
  t.match(await verifyUserToken(ctx, environment, text), {
    userId: 'ann',
    name: 'Ann',
    role: 'moderator',
    rooms: ['a'],
    avatarUrl: 'https://a.example/',
  });
  for (const ttlSeconds of [0, 86_401, 1.5])
    await t.rejects(issue({ ttlSeconds }), {
      code: 'invalid_request',
      message: 'ttl must be between 1 and 86400 seconds',
    });
  await t.rejects(issue({ userId: '' }), { message: 'userId must be 1 to 128 characters' });
});

await t.test('a publishable key and a token authenticate a user', async (t) => {
  const { ctx, environment } = await createWorld(t);
  const { value } = await createKey(ctx, environment, { kind: 'publishable' });
  await addSigningKey(ctx, environment, { kind: 'secret', secret: SECRET, kid: 'k1' });
  const { actor, claims } = await authenticateUser(ctx, value, token(good), 'ws');
  t.match(actor, {
    kind: 'user',
    userId: 'ann',
    role: 'member',
    rooms: null,
    via: 'ws',
    environment: { id: environment.id },
  });
  t.match(claims, { userId: 'ann' });
  await t.rejects(authenticateUser(ctx, 'pk_x', token(good), 'ws'), { code: 'invalid_key' });
  await updateEnvironment(ctx, environment.id, { disabled: true });
  await t.rejects(authenticateUser(ctx, value, token(good), 'ws'), { code: 'environment_disabled' });
});
