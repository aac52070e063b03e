import t from 'tap';
import { parseTtl, turnCredentials, turnPassword } from '../../src/domain/access/turn-credentials.ts';
import { createWorld, START } from './world.ts';

const urls = ['turn:turn.example.com:3478?transport=udp', 'turns:turn.example.com:5349?transport=tcp'];
const stunUrls = ['stun:turn.example.com:3478'];

t.test('the password is the HMAC that TURN servers compute', (t) => {
  t.equal(turnPassword('north', '1735412345:alice'), '5ewl+WmUEHitaXhvToHQzNAcUrM=');
  t.end();
});

t.test('credentials are those of the actor, in both forms, until they expire', async (t) => {
  const world = await createWorld(t);
  const config = { urls, stunUrls, secret: ['north', 'old'] };
  const expires = Math.floor(START / 1000) + 3600;
  const username = `${expires}:${world.environment.id}.ann`;
  const password = turnPassword('north', username);
  t.strictSame(turnCredentials(world.ctx, world.ann, config, 'bob', 3600), {
    iceServers: [{ urls: stunUrls }, { urls, username, credential: password }],
    username,
    password,
    ttl: 3600,
    uris: urls,
    expiresAt: new Date(expires * 1000).toISOString(),
  });
  t.equal(
    turnCredentials(world.ctx, world.backend, config, null, 60).username,
    `${Math.floor(START / 1000) + 60}:${world.environment.id}.backend`,
  );
  t.equal(
    turnCredentials(world.ctx, world.backend, config, 'zoë:1', 60).username,
    `${Math.floor(START / 1000) + 60}:${world.environment.id}.zoë:1`,
  );
  t.match(
    turnCredentials(world.ctx, world.backend, config, `it's "a\\b" 5%\u00a0`, 60).username,
    /\.it%27s%20%22a%5Cb%22%205%25%C2%A0$/,
  );
  t.strictSame(turnCredentials(world.ctx, world.ann, { ...config, stunUrls: [] }, null, 60).iceServers.length, 1);
  t.throws(() => turnCredentials(world.ctx, world.backend, config, '', 60), {
    code: 'invalid_request',
    message: 'userId must be 1 to 128 characters',
  });
});

t.test('without a TURN server there are no credentials', async (t) => {
  const world = await createWorld(t);
  const none = { username: null, password: null, ttl: 0, uris: [] };
  t.strictSame(turnCredentials(world.ctx, world.ann, { urls: [], stunUrls, secret: ['north'] }, null, 60), {
    iceServers: [{ urls: stunUrls }],
    ...none,
  });
  t.strictSame(turnCredentials(world.ctx, world.ann, { urls, stunUrls: [], secret: [] }, null, 60), {
    iceServers: [],
    ...none,
  });
});

t.test('ttl is 60 to 86 400 seconds, an hour when absent', (t) => {
  t.strictSame([null, '60', '86400'].map(parseTtl), [3600, 60, 86_400]);
  for (const text of ['', '59', '86401', '-60', '1e3', '60.5', ' 60', 'x', '9'.repeat(30)]) {
    t.throws(
      () => parseTtl(text),
      { code: 'invalid_request', message: 'ttl must be a whole number of seconds between 60 and 86400' },
      text,
    );
  }
  t.end();
});
