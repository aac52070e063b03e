import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { createDemo } from '../../src/demo/demo.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey, revokeKey } from '../../src/domain/access/keys.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import { authenticateUser } from '../../src/domain/access/tokens.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import type { Environment } from '../../src/model/environments/environment.ts';

function createContext(): Context {
  return {
    store: new MemoryStore(),
    shared: new MemoryShared(),
    clock: new ManualClock(Date.parse('2026-01-02T03:04:05.678Z')),
  };
}

async function createDefault(ctx: Context): Promise<Environment> {
  const environment = await createEnvironment(ctx, { slug: 'default' });
  await addSigningKey(ctx, environment, { kind: 'secret' });
  return environment;
}

t.test('a session has the credentials to connect as one of the demo users', async (t) => {
  const ctx = createContext();
  const environment = await createDefault(ctx);
  const old = await createKey(ctx, environment, { kind: 'publishable' });
  await revokeKey(ctx, old.key.id);
  await createKey(ctx, environment, { kind: 'secret' });
  const { value } = await createKey(ctx, environment, { kind: 'publishable' });

  const session = JSON.parse(await createDemo(ctx, 'default').session('bob')) as Record<string, string>;
  t.match(session, {
    publishableKey: value,
    userId: 'bob',
    environmentId: environment.id,
    roomId: 'demo',
    expiresAt: '2026-01-02T04:04:05.000Z',
  });
  const { actor, claims } = await authenticateUser(ctx, session['publishableKey'] ?? '', session['token'] ?? '', 'ws');
  t.match(actor, { userId: 'bob', role: 'member', rooms: null });
  t.match(claims, { name: 'Bob' });
});

t.test('other users are refused', async (t) => {
  const ctx = createContext();
  const environment = await createDefault(ctx);
  const demo = createDemo(ctx, 'default');
  await t.rejects(demo.session('mallory'), { code: 'invalid_request', message: 'user must be one of ann, bob' });
  await t.rejects(demo.session(''), { code: 'invalid_request' });
  await t.rejects(demo.session('ann'), {
    code: 'key_not_found',
    message: `Environment ${environment.slug} has no publishable key`,
  });
});

t.test('a missing environment is reported', async (t) => {
  const demo = createDemo(createContext(), 'default');
  await t.rejects(demo.session('ann'), { code: 'environment_not_found' });
});

t.test('the page loads nothing from other hosts and has no inline script', (t) => {
  const { files } = createDemo(createContext(), 'default');
  const text = (path: string): string => files[path]?.text ?? t.fail(`no ${path}`).toString();
  for (const path of ['/', '/demo/page']) {
    t.notMatch(text(path), /(?:src|href)="(?:https?:)?\/\//);
    t.notMatch(text(path), /<script(?![^>]* src=)|<style|style="|\son\w+="/);
  }
  t.match(text('/'), '<script type="module" src="/demo/demo.js">');
  t.match(text('/demo/page'), '<script type="module" src="/widget.js">');
  for (const path of ['/demo/demo.css', '/demo/product.css']) t.notMatch(text(path), /url\(|@import/);
  for (const path of ['/demo/demo.js', '/demo/product.js'])
    t.notMatch(text(path), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/);
  t.match(text('/demo/icon.svg'), /^<svg/);
  t.strictSame(
    Object.keys(files).filter((path) => files[path]?.framed === true),
    ['/demo/page'],
    'other pages show in no frame',
  );
  t.end();
});
