import { createHmac, randomBytes } from 'node:crypto';

/** Signs an HS256 user token, valid for an hour, as a backend would. Every token is different. */
export function mintToken(secret: string, kid: string, userId: string): string {
  const now = Math.floor(Date.now() / 1000);
  const header = encode({ alg: 'HS256', kid, typ: 'JWT' });
  const payload = encode({ sub: userId, iat: now, exp: now + 3600, jti: randomBytes(9).toString('base64url') });
  const signature = createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url');
  return `${header}.${payload}.${signature}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
