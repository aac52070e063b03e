// POST /collab-token answers with a token of the user who is signed in. Node 20 or later, no packages.
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';

const { COLLAB_SIGNING_SECRET: secret, COLLAB_SIGNING_KID: kid, PORT = '3000' } = process.env;
if (!secret || !kid) throw new Error('Set COLLAB_SIGNING_SECRET and COLLAB_SIGNING_KID to the signing secret and its kid, as `collab init` or `npm start` printed them.');
const LIFETIME_SECONDS = 15 * 60;

/** Replace this by your session: the id must come from your server, never from the request. */
function signedInUser(_request) {
  return { sub: 'ann', name: 'Ann Lee' };
}

function tokenOf(user) {
  const iat = Math.floor(Date.now() / 1000);
  const encode = (part) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const content = `${encode({ alg: 'HS256', typ: 'JWT', kid })}.${encode({ ...user, iat, exp: iat + LIFETIME_SECONDS })}`;
  return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`;
}

const server = createServer((request, response) => {
  if (request.method !== 'POST' || request.url !== '/collab-token') return response.writeHead(404).end();
  const user = signedInUser(request);
  if (user === null) return response.writeHead(401).end();
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Cache-Control': 'no-store' }).end(tokenOf(user));
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/collab-token`));
