import t from 'tap';
import { createAdmin, removeAdmin, setAdminPassword } from '../../src/domain/admins/admins.ts';
import { createKey, revokeKey, rotateKey } from '../../src/domain/access/keys.ts';
import { addSigningKey, removeSigningKey } from '../../src/domain/access/signing-keys.ts';
import { appendAuditRecord } from '../../src/domain/audit/audit.ts';
import { exportChain, verifyExport } from '../../src/domain/audit/audit-export.ts';
import { verifyChain } from '../../src/domain/audit/verify.ts';
import { editComment } from '../../src/domain/comments/comments.ts';
import { addReaction, removeReaction } from '../../src/domain/comments/reactions.ts';
import { deleteThread, setResolved } from '../../src/domain/comments/threads.ts';
import { createEnvironment, deleteEnvironment, updateEnvironment } from '../../src/domain/environments/environments.ts';
import { deleteRoom } from '../../src/domain/rooms/room-removal.ts';
import { deleteUser } from '../../src/domain/users/users.ts';
import { auditHeadOf, auditOf } from '../../src/domain/records/partitions.ts';
import type { AuditRecord } from '../../src/model/environments/audit.ts';
import { createWorld, startThread, type World } from './world.ts';

const PASSWORD = 'correct horse battery';

async function recordsOf({ ctx }: World, chain: string | null): Promise<AuditRecord[]> {
  return (await ctx.store.range(auditOf(chain))).map(({ value }) => JSON.parse(value) as AuditRecord);
}

async function linesOf({ ctx, environment }: World): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of exportChain(ctx, environment.id)) lines.push(line);
  return lines;
}

async function* each(lines: readonly string[]): AsyncIterable<string> {
  for (const line of lines) yield await Promise.resolve(line);
}

/** Some acts in the environment of a world. */
async function act(world: World): Promise<void> {
  const { ctx, environment } = world;
  const { key } = await createKey(ctx, environment, { kind: 'secret', name: 'ci', scope: 'read' });
  await rotateKey(ctx, key.id, {});
  await updateEnvironment(ctx, environment.id, {
    settings: { maxFileSizeMb: 25, allowedOrigins: ['https://app.example.com'] },
  });
  await deleteUser(ctx, world.backend, 'bob');
}

t.test('every administrative act leaves one record in the chain that it belongs to', async (t) => {
  const world = await createWorld(t);
  const { environment } = world;
  const ctx = { ...world.ctx, operator: { kind: 'cli', id: 'ann' } } as const;
  const { key } = await createKey(ctx, environment, { kind: 'secret', rooms: 'docs*' });
  const rotated = await rotateKey(ctx, key.id, { overlapSeconds: 60 });
  await revokeKey(ctx, rotated.key.id);
  await revokeKey(ctx, rotated.key.id);
  const { kid } = await addSigningKey(ctx, environment, {
    kind: 'secret',
    secret: 'a secret of more than thirty-two bytes',
  });
  await removeSigningKey(ctx, environment, kid);
  await updateEnvironment(ctx, environment.id, {
    name: 'Changed',
    settings: { maxFileSizeMb: 25, limits: { mentions: 3 }, jwtIssuer: 'https://idp.example.com' },
  });
  await startThread(world, 'room');
  await deleteRoom(world.ctx, world.backend, 'room');
  await deleteUser(world.ctx, world.backend, 'bob');
  const own = await recordsOf(world, environment.id);
  t.strictSame(
    own.map(({ action }) => action),
    [
      'environment.create',
      'key.create',
      'key.rotate',
      'key.revoke',
      'signing-key.create',
      'signing-key.remove',
      'environment.update',
      'room.delete',
      'user.erase',
    ],
  );
  t.strictSame(own[1]?.actor, { kind: 'cli', id: 'ann' });
  t.strictSame(own[2]?.details, { replaces: key.id, overlapSeconds: 60 });
  t.strictSame(
    own[6]?.details,
    { name: 'changed', 'settings.maxFileSizeMb': 25, 'settings.limits.mentions': 3, 'settings.jwtIssuer': 'changed' },
    'numbers are given, texts are not',
  );
  t.strictSame(
    [own[7]?.actor, own[8]?.target],
    [
      { kind: 'key', id: world.backend.keyId },
      { kind: 'user', id: 'bob' },
    ],
  );
  t.notMatch(JSON.stringify(own), /more than thirty-two|docs\*|idp\.example/, 'no secret, room or address');

  await createAdmin(ctx, 'ops@example.com', PASSWORD);
  await setAdminPassword(ctx, 'ops@example.com', `${PASSWORD}!`);
  await removeAdmin(ctx, 'ops@example.com');
  const other = await createEnvironment(ctx, { slug: 'other' });
  await deleteEnvironment(ctx, other.id);
  const servers = await recordsOf(world, null);
  t.strictSame(
    servers.map(({ action }) => action),
    [
      'environment.create',
      'admin.create',
      'admin.password',
      'admin.remove',
      'environment.create',
      'environment.delete',
    ],
  );
  t.match(
    servers.at(-1)?.details,
    { slug: 'other', auditSeq: 1, auditHash: /^[0-9a-f]{64}$/ },
    'the end of the deleted log is kept',
  );
  t.notMatch(JSON.stringify(servers), /example\.com/);
  t.strictSame(await ctx.store.range(auditOf(other.id)), []);
  for (const chain of [null, environment.id]) t.strictSame((await verifyChain(ctx, chain)).faults, []);
});

t.test(
  'what moderators change of the content of others is recorded, what authors and backends change is not',
  async (t) => {
    const world = await createWorld(t);
    const { ctx, ann, bob, backend, environment } = world;
    const moderator = { ...bob, role: 'moderator' as const };
    const { threadId, commentId } = await startThread(world);
    const react = async (): Promise<string> =>
      (JSON.parse((await addReaction(ctx, ann, commentId, { emoji: '👍' }, null)).body) as { reaction: { id: string } })
        .reaction.id;
    for (const actor of [ann, backend, moderator, { ...backend, scope: 'moderate' as const }])
      await removeReaction(ctx, actor, await react());
    await editComment(ctx, ann, commentId, { body: 'own' });
    await editComment(ctx, moderator, commentId, { body: 'moderated' });
    for (const actor of [ann, moderator, backend, { ...backend, scope: 'moderate' as const }]) {
      for (const resolved of [true, false]) await setResolved(ctx, actor, threadId, resolved);
    }
    await setResolved({ ...ctx, operator: { kind: 'cli', id: 'root' } }, backend, threadId, true);
    await deleteThread(ctx, moderator, threadId);
    const records = (await recordsOf(world, environment.id)).filter(({ action }) => action !== 'environment.create');
    t.strictSame(
      records.map(({ action, actor }) => [action, actor.kind]),
      [
        ['reaction.delete', 'user'],
        ['reaction.delete', 'key'],
        ['comment.update', 'user'],
        ['thread.update', 'key'],
        ['thread.update', 'key'],
        ['thread.update', 'cli'],
        ['thread.delete', 'user'],
      ],
    );
    t.strictSame(
      records.slice(3, 6).map(({ details }) => details),
      [{ resolved: true }, { resolved: false }, { resolved: true }],
    );
    t.match(records[0], { actor: { id: 'bob' }, target: { kind: 'reaction', id: /^re_/ }, details: {} });
  },
);

t.test('two acts of one transaction, and acts of concurrent transactions, form one chain', async (t) => {
  const world = await createWorld(t);
  const { ctx, environment } = world;
  const target = { kind: 'server', id: 'server' } as const;
  const twice = (worker: World['ctx']) =>
    worker.store.transact(async (tx) => {
      for (const action of ['key.create', 'key.revoke'] as const)
        await appendAuditRecord(worker, tx, environment.id, { action, target });
    });
  await Promise.all([twice(ctx), twice(world.peer), twice(ctx)]);
  const { faults, head } = await verifyChain(ctx, environment.id);
  t.strictSame([faults, head.seq], [[], 7]);
});

t.test('an act that is refused leaves no record', async (t) => {
  const world = await createWorld(t);
  await t.rejects(updateEnvironment(world.ctx, world.environment.id, { settings: { maxFileSizeMb: -1 } }));
  await t.rejects(revokeKey(world.ctx, 'key_unknown'));
  t.equal((await recordsOf(world, world.environment.id)).length, 1);
});

t.test('verifying an export finds every change of every field of every line', async (t) => {
  const world = await createWorld(t);
  await act(world);
  const lines = await linesOf(world);
  t.strictSame((await verifyExport(each(lines), [])).faults, []);
  let changes = 0;
  for (const [at, line] of lines.entries()) {
    for (const changed of changesOf(JSON.parse(line))) {
      const faults = await verifyExport(each(lines.with(at, JSON.stringify(changed))), []).then(
        (verdict) => verdict.faults,
        (error: Error) => [error.message],
      );
      t.ok(faults.length > 0, `line ${at + 1}: ${JSON.stringify(changed).slice(0, 100)}`);
      changes++;
    }
    if (at > 0)
      t.ok((await verifyExport(each(lines.toSpliced(at, 1)), [])).faults.length > 0, `without line ${at + 1}`);
    if (at > 0 && at < lines.length - 1) {
      t.ok((await verifyExport(each(lines.toSpliced(at, 0, line)), [])).faults.length > 0, `line ${at + 1} twice`);
      if (at > 1)
        t.ok(
          (await verifyExport(each(lines.with(at, lines[at - 1] ?? '').with(at - 1, line)), [])).faults.length > 0,
          `lines ${at} and ${at + 1} exchanged`,
        );
      t.ok((await verifyExport(each(lines.with(at, '{')), [])).faults.length > 0, `line ${at + 1} is not JSON`);
    }
  }
  t.ok(changes > 50);
});

t.test('verifying the stored chain finds a changed, missing, moved or added record, and a cut end', async (t) => {
  const world = await createWorld(t);
  const { ctx, environment } = world;
  await act(world);
  const partition = auditOf(environment.id);
  const entries = await ctx.store.range(partition);
  const faultsAfter = async (change: (put: (key: string, value: string | undefined) => void) => void) => {
    await ctx.store.transact((tx) =>
      Promise.resolve(
        change((key, value) => (value === undefined ? tx.delete(partition, key) : tx.put(partition, key, value))),
      ),
    );
    const { faults } = await verifyChain(ctx, environment.id);
    await ctx.store.transact(async (tx) => {
      for (const { key } of await tx.range(partition)) tx.delete(partition, key);
      for (const { key, value } of entries) tx.put(partition, key, value);
    });
    return faults;
  };
  t.strictSame(await faultsAfter(() => {}), []);
  for (const { key, value } of entries) {
    t.match(
      await faultsAfter((put) => put(key, value.replace(/"action":"[^"]+"/, '"action":"admin.login"'))),
      [/was changed/],
      `${key} changed`,
    );
    t.match(await faultsAfter((put) => put(key, undefined)), [/missing/], `${key} removed`);
    t.match(await faultsAfter((put) => put(key, 'x')), [/is not a record/], `${key} is not JSON`);
  }
  const [first, second] = entries;
  t.ok(
    (await faultsAfter((put) => (put(first?.key ?? '', second?.value), put(second?.key ?? '', first?.value)))).length >
      0,
    'exchanged',
  );
  t.match(await faultsAfter((put) => put('000000000099', entries.at(-1)?.value)), [/in the place of/], 'added');

  const { head } = await verifyChain(ctx, environment.id);
  const last = entries.at(-2);
  const shorter = JSON.parse(last?.value ?? '') as AuditRecord;
  await ctx.store.transact((tx) => {
    tx.delete(partition, entries.at(-1)?.key ?? '');
    tx.put(auditHeadOf(environment.id), 'head', JSON.stringify({ seq: shorter.seq, hash: shorter.hash }));
    return Promise.resolve();
  });
  t.strictSame((await verifyChain(ctx, environment.id)).faults, [], 'cutting the end and the head is not found');
  t.match(
    (await verifyChain(ctx, environment.id, [head])).faults,
    [/truncated/],
    'except with a head that was noted elsewhere',
  );
});

/** The value with one of its parts changed, once for each part. */
function* changesOf(value: unknown): Iterable<unknown> {
  if (Array.isArray(value))
    for (const [at, entry] of value.entries()) for (const changed of changesOf(entry)) yield value.with(at, changed);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, entry] of Object.entries(value)) {
      for (const changed of changesOf(entry)) yield { ...value, [key]: changed };
      const { [key]: _, ...rest } = value as Record<string, unknown>;
      yield rest;
    }
  } else if (typeof value === 'string') yield `${value}x`;
  else if (typeof value === 'number') yield value + 1;
  else yield value === null ? 0 : null;
}
