import type { App } from '../../core/app.ts';

/** The state of push messages in this browser. */
export interface Push {
  /** The public key of the environment, as `pushManager.subscribe` takes it. */
  readonly publicKey: string;
  /** Address of the page's service worker. */
  readonly worker: string;
  /** The address at which the push service reaches this browser for this user; null while push messages are off. */
  readonly endpoint: string | null;
  /** Whether the browser refuses notifications of this site. */
  readonly isDenied: boolean;
}

/** The browser refuses notifications of this site. */
export class PushDenied extends Error {}

/** `-` is the environment of the credential. */
const PLUGIN = '/plugins/web-push/-';
const headers = { 'Content-Type': 'application/json' };

/**
 * The state of push messages; null without a service worker of the page, and where browser or server do not have them.
 * Never rejects.
 */
export async function findPush(app: App): Promise<Push | null> {
  const worker = app.host.pushWorker();
  if (worker === '' || !('serviceWorker' in navigator) || !('PushManager' in window) || !('Notification' in window))
    return null;
  try {
    const { publicKey } = (await (await app.session.fetch(`${PLUGIN}/key`)).json()) as { readonly publicKey: string };
    const push = { publicKey, worker, endpoint: null, isDenied: Notification.permission === 'denied' };
    const subscription = await (await navigator.serviceWorker.getRegistration(worker))?.pushManager.getSubscription();
    if (subscription === null || subscription === undefined) return push;
    // Another user of this browser may have turned them on.
    const answer = await app.session.fetch(
      `${PLUGIN}/subscription?endpoint=${encodeURIComponent(subscription.endpoint)}`,
    );
    const { subscribed } = (await answer.json()) as { readonly subscribed: boolean };
    return { ...push, endpoint: subscribed ? subscription.endpoint : null };
  } catch {
    return null;
  }
}

/**
 * Asks for permission and turns push messages on for this user. Rejects with `PushDenied`, and if browser or server
 * refuse it.
 */
export async function subscribe(app: App, push: Push): Promise<Push> {
  if ((await Notification.requestPermission()) !== 'granted') throw new PushDenied();
  // A page whose policy allows no address as a script has registered its worker itself.
  const known = await navigator.serviceWorker.getRegistration(push.worker);
  const registration = known ?? (await navigator.serviceWorker.register(push.worker));
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: push.publicKey,
  });
  await app.session.fetch(`${PLUGIN}/subscription`, { method: 'POST', headers, body: JSON.stringify(subscription) });
  return { ...push, endpoint: subscription.endpoint, isDenied: false };
}

/** Turns push messages off for this user in this browser. Rejects if the server refuses it. */
export async function unsubscribe(app: App, push: Push): Promise<Push> {
  await app.session.fetch(`${PLUGIN}/subscription`, {
    method: 'DELETE',
    headers,
    body: JSON.stringify({ endpoint: push.endpoint }),
  });
  const registration = await navigator.serviceWorker.getRegistration(push.worker);
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  return { ...push, endpoint: null };
}
