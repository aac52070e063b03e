import type { Kv } from '../../src/plugins/api.ts';
import webPush from 'web-push';

/** A pair of VAPID keys (RFC 8292), base64url. */
export interface Keys {
  readonly publicKey: string;
  readonly privateKey: string;
}

const KEY = 'vapid-keys';

/** The keys of the environment; undefined before `createKeys`. */
export async function readKeys(kv: Kv): Promise<Keys | undefined> {
  return (await kv.get(KEY)) as Keys | undefined;
}

/** Makes the keys of the environment, unless it has some, and returns those it has then. */
export async function createKeys(kv: Kv): Promise<{ readonly keys: Keys; readonly isNew: boolean }> {
  const { publicKey, privateKey } = webPush.generateVAPIDKeys();
  const isNew = await kv.replace(KEY, undefined, { publicKey, privateKey });
  const keys = await readKeys(kv);
  if (keys === undefined) throw new Error('the keys could not be stored');
  return { keys, isNew };
}
