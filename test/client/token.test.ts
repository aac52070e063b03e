import t, { type Test } from 'tap';
import { openSession, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';

/** Takes the timers of 30 s that `act` starts. Returns how to let them end. */
function takeTimers(t: Test, act: () => void): () => void {
  const { setTimeout: real } = globalThis;
  const taken: (() => void)[] = [];
  const restore = t.intercept(globalThis, 'setTimeout', {
    value: ((run: () => void, ms: number) =>
      ms === 30_000 ? real((taken.push(run), () => {}), 0) : real(run, ms)) as typeof setTimeout,
  }).restore;
  act();
  restore();
  return () => {
    for (const run of taken) run();
  };
}

t.test(
  'a token function that does not answer has failed after 30 s, and what it answers later is ignored',
  async (t) => {
    const tenant = await (await startService(t)).tenant('acme');
    const late: ((token: string) => void)[] = [];
    let calls = 0;
    let session: ReturnType<typeof openSession> | undefined;
    const end = takeTimers(t, () => {
      session = openSession(t, tenant, 'ann', {
        token: () =>
          ++calls === 1 ? new Promise<string>((resolve) => late.push(resolve)) : tenant.token({ userId: 'ann' }),
      });
    });
    if (session === undefined) return;
    t.equal(session.getSnapshot().status, 'connecting');
    const failed = stateOf(session, ({ error }) => error !== null);
    end();
    t.match(await failed, {
      status: 'reconnecting',
      error: { code: 'token_failed', message: /no answer within 30 s/ },
    });
    t.match(await stateOf(session, ({ status }) => status === 'live'), { userId: 'ann' });
    late[0]?.('a.late.token');
    await session.fetch('/rooms/page/p2p/state').catch((error: unknown) => t.match(error, { code: /_not_found$/ }));
    t.equal(calls, 2, 'the token is still the good one');
  },
);

t.test('reconnect() asks for another token at once', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const late: ((token: string) => void)[] = [];
  const session = openSession(t, tenant, 'ann', {
    token: () =>
      late.length === 0 ? new Promise<string>((resolve) => late.push(resolve)) : tenant.token({ userId: 'ann' }),
  });
  session.reconnect();
  late[0]?.(await tenant.token({ userId: 'eve' }));
  t.match(await stateOf(session, ({ status }) => status === 'live'), { userId: 'ann' });
});

t.test('close() while a token is waited for opens no socket, and reconnect() after it opens one', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const tokens: ((token: string) => void)[] = [];
  let opened = 0;
  const session = openSession(t, tenant, 'ann', {
    token: () => new Promise<string>((resolve) => tokens.push(resolve)),
    WebSocket: class {
      constructor() {
        opened++;
        throw new Error('no network');
      }
    } as never,
  });
  session.close();
  tokens[0]?.(await tenant.token({ userId: 'ann' }));
  await session.fetch('/users/ann').catch(() => undefined);
  t.equal(opened, 0);
  t.match(session.getSnapshot(), { status: 'closed', error: null });

  session.reconnect();
  await stateOf(session, ({ error }) => error !== null);
  t.equal(opened, 1);
  t.match(session.getSnapshot(), { status: 'reconnecting', error: { code: 'network' } });
});
