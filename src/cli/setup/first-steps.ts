import type { Setup } from './setup.ts';
import { facts } from '../terminal/output.ts';

/** The keys of a new folder, and that they are not shown again. */
export function keysText(setup: Setup): string {
  return [
    facts([
      ['secret key', setup.secretKey],
      ['publishable key', setup.publishableKey],
      ['signing secret', setup.jwtSecret],
      ['its kid', setup.jwtKid],
    ]),
    '',
    'The secret key and the signing secret are not shown again. Keep them in your backend.',
  ].join('\n');
}

/** A line for the shell that posts a thread as `userId`. */
export function postingLine(address: string, secretKey: string, userId: string): string {
  const body = JSON.stringify({ userId, body: 'Hello from curl' });
  return `curl ${address}/api/v1/rooms/demo/threads -H 'Authorization: Bearer ${secretKey}' -H 'Content-Type: application/json' -d '${body}'`;
}

/** A line for the shell that makes `userId` known, so that it may be an author. */
export function userLine(address: string, secretKey: string, userId: string): string {
  const body = JSON.stringify({ name: 'CI', kind: 'bot' });
  return `curl -X PUT ${address}/api/v1/users/${userId} -H 'Authorization: Bearer ${secretKey}' -H 'Content-Type: application/json' -d '${body}'`;
}
