import { randomUUID } from 'node:crypto';
import {
  type CommandCall,
  type CommandResult,
  definePlugin,
  type Payload,
  type PluginHost,
  type PluginNotification,
  UsageError,
} from '../../src/plugins/api.ts';
import { type Config, ConfigSchema } from './config.ts';
import { digestOf, type DigestJob, runDigest } from './digest.ts';
import { sendMail } from './mail.ts';
import { addPending, groupOf } from './pending.ts';
import { renderDigest } from './templates.ts';
import { registerUnsubscribe } from './unsubscribe.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const RETRY_DELAYS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 6 * HOUR_MS];

/** Mails users what they have not read after some minutes (docs/channels.md). */
export default definePlugin({
  name: 'email',
  version: '1.0.0',
  apiVersion: 1,
  config: ConfigSchema,
  setup(host) {
    const digests = host.queue(
      'digests',
      (job, context, environment) =>
        runDigest(host, job, context, environment, context.attempt > RETRY_DELAYS_MS.length),
      {
        retryDelaysMs: RETRY_DELAYS_MS,
        concurrency: 8,
        groupConcurrency: 1,
        timeoutMs: 60_000,
      },
    );
    host.action('notification.created', async (event, { config, environment }) => {
      const { id, userId, kind } = event.data as PluginNotification;
      if (!(await host.data.wantsNotification(environment, userId, host.name, kind))) return;
      await addPending(host.kv(environment), userId, id);
      const payload: DigestJob & Payload = { userId, notificationId: id };
      await digests.add(environment, [
        { id, payload, delayMs: config.delayMinutes * MINUTE_MS, group: groupOf(userId) },
      ]);
    });
    registerUnsubscribe(host);
    host.command(
      {
        name: 'test <address>',
        summary: 'Send a sample mail to an address now.',
        examples: ['collab email test you@example.com --env default'],
      },
      (call) => sendSample(host, call),
    );
  },
});

async function sendSample(
  host: PluginHost<Config>,
  { arguments: [address = ''], config }: CommandCall<Config>,
): Promise<CommandResult> {
  if (!/^[^\s@]+@[^\s@]+$/.test(address)) throw new UsageError(`${JSON.stringify(address)} is not a mail address`);
  const time = `${new Date(host.now()).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const item = {
    author: 'Ann',
    did: 'mentioned you',
    room: 'sample-page',
    text: 'This is a sample: the mail server and the templates work.',
    url: null,
    time,
  };
  const failed = await renderDigest(digestOf(address, [item], null), config.templates)
    .then((content) => sendMail(config, { to: address, id: randomUUID(), ...content, unsubscribeUrl: null }))
    .then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  if (failed === null)
    return { json: { ok: true, reason: null }, text: `${config.smtp.host} accepted a mail to ${address}.` };
  return { json: { ok: false, reason: failed }, text: `The mail was not sent: ${failed}`, failure: 'The test failed.' };
}
