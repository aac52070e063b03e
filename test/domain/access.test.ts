import t from 'tap';
import {
  actorUserId,
  requireAuthor,
  requireBackend,
  requireChange,
  requireRead,
  requireWrite,
} from '../../src/domain/access/access.ts';
import type { BackendActor, UserActor } from '../../src/domain/access/actor.ts';
import type { CollabError } from '../../src/model/errors.ts';
import { defaultSettings, type Environment } from '../../src/model/environments/environment.ts';

const environment: Environment = {
  id: 'env_1',
  slug: 'dev',
  name: 'dev',
  disabled: false,
  settings: defaultSettings,
  createdAt: '',
  updatedAt: '',
};
const backend = (scope: BackendActor['scope'], rooms: BackendActor['rooms'] = null): BackendActor => ({
  kind: 'backend',
  environment,
  keyId: 'k',
  scope,
  rooms,
  via: 'rest',
});
const user = (role: UserActor['role'], rooms: UserActor['rooms'] = null): UserActor => ({
  kind: 'user',
  environment,
  userId: 'ann',
  role,
  rooms,
  confinedKeyId: null,
  via: 'ws',
});

const allowed = (check: () => void): boolean => {
  try {
    check();
    return true;
  } catch (thrown) {
    if ((thrown as CollabError).code !== 'forbidden') throw thrown;
    return false;
  }
};

await t.test('who may read, create, change, and change content of others', async (t) => {
  const rows: [BackendActor | UserActor, boolean, boolean, boolean, boolean][] = [
    [backend('full'), true, true, true, true],
    [backend('moderate'), true, false, true, true],
    [backend('read'), true, false, false, true],
    [user('viewer'), true, false, false, false],
    [user('member'), true, true, true, false],
    [user('moderator'), true, true, true, true],
  ];
  for (const [actor, reads, creates, changes, others] of rows) {
    const who = actor.kind === 'backend' ? `key ${actor.scope}` : actor.role;
    t.equal(
      allowed(() => requireRead(actor, 'room')),
      reads,
      `${who} reads`,
    );
    t.equal(
      allowed(() => requireWrite(actor, 'room')),
      creates,
      `${who} creates`,
    );
    t.equal(
      allowed(() => requireChange(actor, 'room')),
      changes,
      `${who} changes`,
    );
    t.equal(
      allowed(() => requireAuthor(actor, 'bob', 'comment')),
      others,
      `${who} changes what bob wrote`,
    );
    t.ok(
      allowed(() => requireAuthor(actor, 'ann', 'comment')),
      `${who} passes as the author`,
    );
  }
});

await t.test('a scope of rooms applies to every operation', async (t) => {
  for (const actor of [backend('full', ['a', 'b/*']), user('moderator', ['a', 'b/*'])]) {
    for (const check of [requireRead, requireWrite, requireChange]) {
      for (const roomId of ['a', 'b/', 'b/1']) t.ok(allowed(() => check(actor, roomId)));
      for (const roomId of ['ab', 'b', 'c', ''])
        t.notOk(
          allowed(() => check(actor, roomId)),
          roomId,
        );
    }
  }
  t.notOk(
    allowed(() => requireRead(user('member', []), 'a')),
    'no rooms at all',
  );
});

await t.test('operations for backends refuse users, and writing needs the scope full', async (t) => {
  t.ok(allowed(() => requireBackend(backend('read'), 'read')));
  t.notOk(allowed(() => requireBackend(backend('read'), 'write')));
  t.ok(allowed(() => requireBackend(backend('full'), 'write')));
  t.notOk(allowed(() => requireBackend(user('moderator'), 'read')));
});

await t.test('an event names the user who acted, and null for a backend', async (t) => {
  t.equal(actorUserId(user('member')), 'ann');
  t.equal(actorUserId(backend('full')), null);
});
