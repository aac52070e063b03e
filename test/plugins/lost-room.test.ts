import t from 'tap';
import email from '../../plugins/email/index.ts';
import webPush from '../../plugins/web-push/index.ts';
import { pluginData } from '../../src/plugins/services/plugin-data.ts';
import { hostPlugin, type TestHost } from '../doubles/plugin-host.ts';
import { startMailServer } from '../helpers/mail-server.ts';
import { handled, inboxOf, startNotifying } from '../helpers/notifications.ts';
import { notificationCreated } from '../helpers/plugin-events.ts';
import { newBrowser } from '../helpers/push-receiver.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addThread, addUser, done } from '../helpers/writer.ts';

const service = await startService(t);
const consumers = await startNotifying(t, service.ctx);
let tenants = 0;

/** What happens to the notifications before a job runs. */
type Change = (tenant: Tenant, lostThreadId: string) => Promise<void>;

/** The user's token no longer has the room `lost`. */
const loseRoom: Change = (tenant) => confine(tenant, ['kept']);

/** The user mutes the thread in the room `lost`. */
const muteThread: Change = async (tenant, threadId) => {
  done(
    200,
    await tenant.request('POST', `/threads/${threadId}/subscription`, { body: { userId: 'bob', action: 'mute' } }),
  );
};

/** The comment in the room `lost` no longer mentions the user. */
const editMentionAway: Change = async (tenant, threadId) => {
  const { items } = done<{ items: { id: string }[] }>(
    200,
    await tenant.request('GET', `/threads/${threadId}/comments`),
  );
  done(200, await tenant.request('PATCH', `/comments/${items[0]?.id}`, { body: { body: 'In lost', mentions: [] } }));
  await handled(consumers, service.ctx, tenant.environment);
};

async function confine(tenant: Tenant, rooms: readonly string[]): Promise<void> {
  service.clock.advance(1_000);
  done(201, await tenant.request('POST', '/users/bob/tokens', { body: { rooms } }));
}

/**
 * Gives the plugin the notifications of bob, who is mentioned in the rooms `lost` and `kept` while his token has both,
 * and makes the change. The notifications are those of a real server.
 */
async function notifyBob(host: TestHost, change: Change): Promise<void> {
  const tenant = await service.tenant(`lost-${++tenants}`);
  const { environment } = tenant;
  for (const userId of ['ann', 'bob']) await addUser(tenant, userId, { email: `${userId}@example.com` });
  await confine(tenant, ['lost', 'kept']);
  const lost = await addThread(tenant, 'lost', { body: 'In lost', mentions: ['bob'] });
  await addThread(tenant, 'kept', { body: 'In kept', mentions: ['bob'] });
  await handled(consumers, service.ctx, environment);
  const data = pluginData(service.ctx, () => Promise.resolve(true));
  Object.assign(host.data, {
    notification: (_: unknown, userId: string, id: string) => data.notification(environment, userId, id),
    comment: (_: unknown, id: string) => data.comment(environment, id),
    user: (_: unknown, id: string) => data.user(environment, id),
  });
  const { items } = await inboxOf(tenant, 'bob');
  for (const [index, item] of items.entries()) await host.emit(notificationCreated(index + 1, item));
  await change(tenant, lost.id);
}

const changes = [
  ['of a room that its recipient may not see any more', loseRoom],
  ['of a thread that its recipient has muted since', muteThread],
  ['whose mention of its recipient was edited away', editMentionAway],
] as const;

for (const [reason, change] of changes) {
  t.test(`a mail has no comment ${reason}`, async (t) => {
    const server = await startMailServer(t);
    const host = await hostPlugin(email, {
      config: { smtp: { host: '127.0.0.1', port: server.port, tls: 'none' }, from: 'comments@example.com' },
    });
    await notifyBob(host, change);
    await host.runJobs(5 * 60_000);
    t.equal(server.mails.length, 1);
    t.match(server.mails[0]?.text, 'In kept');
    t.notMatch(server.mails[0]?.source, 'In lost');
    t.same(await host.kv.list({ prefix: 'pending/' }), []);
  });

  t.test(`no browser gets a comment ${reason}`, async (t) => {
    const receiver = await startReceiver(t, 201);
    const host = await hostPlugin(webPush, { config: { subject: 'mailto:ops@example.com' } });
    await host.command('keys');
    const browser = newBrowser();
    const { p256dh, auth } = browser;
    await host.route('POST subscription', {
      userId: 'bob',
      body: JSON.stringify({ endpoint: receiver.url, keys: { p256dh, auth } }),
    });
    await notifyBob(host, change);
    await host.runJobs();
    t.strictSame(
      receiver.received.map(({ body }) => (JSON.parse(browser.decrypt(body)) as { body: string }).body),
      ['In kept'],
    );
    t.same(await host.queue('pushes').count(), { waiting: 0, dead: 0 });
  });
}
