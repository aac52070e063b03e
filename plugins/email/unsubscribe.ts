import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Kv, PluginEnvironment, PluginHost, RouteResponse, RouteRequest } from '../../src/plugins/api.ts';

const KEY = 'unsubscribe-key';
const PATH = 'unsubscribe';
const ENDED = '<p>You get no more mails about comments.</p>';

/** The address at which a user ends the mails, signed for this user; null without `publicUrl`. It does not expire. */
export async function unsubscribeUrl(
  host: PluginHost<unknown>,
  environment: PluginEnvironment,
  userId: string,
): Promise<string | null> {
  if (host.publicUrl === '') return null;
  const query = new URLSearchParams({ user: userId, signature: await signatureOf(host.kv(environment), userId) });
  return `${host.publicUrl}/api/v1/plugins/${host.name}/${environment.slug}/${PATH}?${query.toString()}`;
}

/**
 * Registers the route behind the address. `GET` shows a button, because programs that check mail follow links; `POST`,
 * from that button or by a mail program (RFC 8058), turns the mails off.
 */
export function registerUnsubscribe(host: PluginHost<unknown>): void {
  const credential = 'public';
  host.route({ method: 'GET', path: PATH, credential }, async ({ query }, { environment }) => {
    if (!(await isSigned(host.kv(environment), query))) return invalid;
    return page(200, '<p>No more mails about comments?</p><form method="post"><button>Unsubscribe</button></form>');
  });
  host.route({ method: 'POST', path: PATH, credential }, async ({ query }, { environment }) => {
    if (!(await isSigned(host.kv(environment), query))) return invalid;
    const userId = query['user'] ?? '';
    // The link is valid after the erasure of its user too, of whom nothing may be stored then.
    if ((await host.data.user(environment, userId)) === undefined) return page(200, ENDED);
    for (const kind of ['mention', 'reply'] as const)
      await host.data.setPreference(environment, userId, host.name, kind, false);
    return page(200, ENDED);
  });
}

async function isSigned(kv: Kv, { user, signature = '' }: RouteRequest['query']): Promise<boolean> {
  if (user === undefined) return false;
  const [expected, given] = [Buffer.from(await signatureOf(kv, user)), Buffer.from(signature)];
  return expected.length === given.length && timingSafeEqual(expected, given);
}

async function signatureOf(kv: Kv, userId: string): Promise<string> {
  return createHmac('sha256', await readKey(kv))
    .update(userId)
    .digest('base64url');
}

/** The key of the environment, made at its first use. */
async function readKey(kv: Kv): Promise<string> {
  const known = await kv.get(KEY);
  if (typeof known === 'string') return known;
  await kv.replace(KEY, undefined, randomBytes(32).toString('base64url'));
  return readKey(kv);
}

const invalid = page(403, '<p>This link is incomplete or was changed. Please use the link in the mail.</p>');

function page(status: RouteResponse['status'], content: string): RouteResponse {
  const body =
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" ' +
    'content="width=device-width"><title>Mails about comments</title><body style="font:16px/1.5 ' +
    `system-ui,sans-serif;margin:48px auto;max-width:32em;padding:0 16px">${content}</body></html>`;
  return { status, body, contentType: 'text/html; charset=utf-8' };
}
