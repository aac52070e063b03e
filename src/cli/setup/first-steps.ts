import type { Setup } from './setup.ts';
import { keyValues } from '../terminal/output.ts';

/** Formats the keys of a new data folder, with the note that they are not shown again. */
export function keysText(setup: Setup): string {
  return [
    keyValues([
      ['secret key', setup.secretKey],
      ['publishable key', setup.publishableKey],
      ['signing secret', setup.jwtSecret],
      ['kid', setup.jwtKid],
    ]),
    '',
    'The secret key and the signing secret are not shown again. Store them in your backend.',
  ].join('\n');
}

/** A shell command that posts a thread as `userId`, at a place on the page, so that a widget shows it as a pin. */
export function curlPostThread(address: string, secretKey: string, userId: string): string {
  const body = JSON.stringify({ userId, body: 'Hello from curl', position: { x: 0.5, y: 0.25 } });
  return (
    `curl ${address}/api/v1/rooms/demo/threads -H 'Authorization: Bearer ${secretKey}' -H 'Content-Type: ` +
    `application/json' -d '${body}'`
  );
}

/** A shell command that adds the user `userId`, so that it can be an author. */
export function curlPutUser(address: string, secretKey: string, userId: string): string {
  const body = JSON.stringify({ name: 'CI', kind: 'bot' });
  return (
    `curl -X PUT ${address}/api/v1/users/${userId} -H 'Authorization: Bearer ${secretKey}' -H ` +
    `'Content-Type: application/json' -d '${body}'`
  );
}
