import t, { type Test } from 'tap';
import { Check } from 'typebox/value';
import { login } from '../../src/domain/admins/admin-sessions.ts';
import { revokeKey } from '../../src/domain/access/keys.ts';
import type { Route } from '../../src/http/api/route.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import {
  ADMIN,
  adminSession,
  callOf,
  foreignStatus,
  pace,
  seedFor,
  type Seeds,
  successes,
  titleOf,
} from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import type { TestResponse } from '../helpers/http.ts';
import { addUser } from '../helpers/writer.ts';

// Every route of the table by every kind of credential. A new route is in it by being in the table.

const service = await startService(t);
const own = await service.tenant('own-env');
const other = await service.tenant('other-env');
const revoked = await own.newKey({});
await revokeKey(service.ctx, revoked.id);
const expired = (await own.newKey({ expiresInSeconds: 60 })).value;
const staleToken = await own.token({ userId: 'ann', ttlSeconds: 60 });
service.clock.advance(60_000 + 30_000);
await adminSession(service);
const loggedOut = (await login(service.ctx, ADMIN)).token;
await own.request('POST', '/admin/auth/logout', { key: loggedOut });
const token = await own.token({ userId: 'ann' });
const foreignToken = await other.token({ userId: 'ann' });
const roomOfKey = (await own.newKey({ rooms: 'elsewhere*' })).value;
const reader = (await own.newKey({ scope: 'read' })).value;
const moderator = (await own.newKey({ scope: 'moderate' })).value;

/** How a credential fares on a route: let in as the environment's own, let in as another environment, or refused. */
type Fate = 'own' | 'foreign' | 401 | 403;

/** Its headers are made for each route, since one of them ends the session. */
const ADMIN_KIND = 'adm_ of an admin';

await addUser(own, 'ann');

const bearer = (value: string) => ({ Authorization: `Bearer ${value}` });
const pair = (key: string, jwt: string) => ({ 'X-Service-Key': key, 'X-Service-Token': jwt });

interface Kind {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** For routes that take a secret key. */
  readonly secret: (route: Route) => Fate;
  /** For routes that take a publishable key and a user token. */
  readonly user: (route: Route) => Fate;
  /** For routes of admins. */
  readonly admin?: Fate;
}

const no = (): Fate => 401;
const yes = (): Fate => 'own';
const reach = ({ path }: Route): Fate => (/:(?:roomId|threadId|commentId|reactionId|itemId)/.test(path) ? 403 : 'own');
/** Of a key that is confined to rooms: users belong to no room. */
const confined = (route: Route): Fate =>
  ['users.list', 'users.delete', 'notificationSettings.get', 'notificationSettings.put'].includes(route.operationId)
    ? 403
    : reach(route);
/** Of a user with the role member: the queue is for moderators, and held content for its author. */
const member = (route: Route): Fate =>
  route.access === 'moderate' || route.operationId === 'users.listHeld' ? 403 : 'own';
const refused = { secret: no, user: no };

const kinds: readonly Kind[] = [
  { name: 'none', headers: {}, ...refused },
  { name: 'Authorization of another scheme', headers: { Authorization: `Basic ${own.secretKey}` }, ...refused },
  { name: 'Authorization without a scheme', headers: { Authorization: own.secretKey }, ...refused },
  { name: 'Bearer without a key', headers: { Authorization: 'Bearer ' }, ...refused },
  { name: 'a malformed key', headers: bearer('sk_'), ...refused },
  {
    name: 'a key with a letter changed',
    headers: bearer(own.secretKey.slice(0, -1) + (own.secretKey.endsWith('a') ? 'b' : 'a')),
    ...refused,
  },
  { name: 'a key in another case', headers: bearer(own.secretKey.toUpperCase()), ...refused },
  { name: 'two keys in one', headers: bearer(`${own.secretKey} ${own.secretKey}`), ...refused },
  { name: 'a very long key', headers: bearer(`sk_${'x'.repeat(4000)}`), ...refused },
  { name: 'sk_ of this environment', headers: bearer(own.secretKey), secret: yes, user: no },
  { name: 'sk_ of another environment', headers: bearer(other.secretKey), secret: () => 'foreign', user: no },
  { name: 'sk_ revoked', headers: bearer(revoked.value), ...refused },
  { name: 'sk_ expired', headers: bearer(expired), ...refused },
  { name: 'sk_ as publishable key', headers: pair(own.secretKey, token), ...refused },
  { name: 'pk_ alone', headers: { 'X-Service-Key': own.publishableKey }, ...refused },
  { name: 'pk_ as Bearer', headers: bearer(own.publishableKey), ...refused },
  { name: 'JWT alone', headers: { 'X-Service-Token': token }, ...refused },
  { name: 'JWT as Bearer', headers: bearer(token), ...refused },
  { name: 'pk_ and JWT of this environment', headers: pair(own.publishableKey, token), secret: no, user: member },
  { name: 'pk_ of one environment with JWT of another', headers: pair(own.publishableKey, foreignToken), ...refused },
  { name: 'pk_ and JWT expired', headers: pair(own.publishableKey, staleToken), ...refused },
  {
    name: 'pk_ and JWT with a letter changed',
    headers: pair(
      own.publishableKey,
      token.replace(/.\./, (end) => (end === 'a.' ? 'b.' : 'a.')),
    ),
    ...refused,
  },
  { name: 'pk_ and JWT without signature', headers: pair(own.publishableKey, unsigned(token)), ...refused },
  { name: 'pk_ malformed and JWT', headers: pair('pk_', token), ...refused },
  {
    name: 'pk_ and JWT of role viewer',
    headers: pair(own.publishableKey, await own.token({ userId: 'ann', role: 'viewer' })),
    secret: no,
    user: (route) => (route.access === 'read' ? member(route) : route.access === 'own' ? 'own' : 403),
  },
  {
    name: 'pk_ and JWT of other rooms',
    headers: pair(own.publishableKey, await own.token({ userId: 'ann', rooms: ['elsewhere'] })),
    secret: no,
    user: (route) => (member(route) === 'own' ? reach(route) : 403),
  },
  { name: ADMIN_KIND, headers: {}, ...refused, admin: 'own' },
  { name: 'adm_ logged out', headers: bearer(loggedOut), ...refused },
  { name: 'adm_ that nobody has', headers: bearer(`adm_${'x'.repeat(43)}`), ...refused },
  {
    name: 'sk_ of scope read',
    headers: bearer(reader),
    secret: ({ access }) => (access === 'read' ? 'own' : 403),
    user: no,
  },
  {
    name: 'sk_ of scope moderate',
    headers: bearer(moderator),
    secret: ({ access }) => (access === 'create' || access === 'own' ? 403 : 'own'),
    user: no,
  },
  { name: 'sk_ confined to other rooms', headers: bearer(roomOfKey), secret: confined, user: no },
];

/** What may come of each kind of credential that routes ask for; both for those that take either. */
const asked: Readonly<Record<string, (kind: Kind, route: Route) => Fate>> = {
  public: yes,
  secret: (kind, route) => kind.secret(route),
  user: (kind, route) => kind.user(route),
  admin: (kind) => kind.admin ?? 401,
  either: (kind, route) => ('Authorization' in kind.headers ? kind.secret(route) : kind.user(route)),
};

/** What public routes are asked with: it makes no difference, and a login takes half a second. */
const few = kinds.filter(({ name }) =>
  ['none', 'a malformed key', 'sk_ of this environment', ADMIN_KIND].includes(name),
);

function unsigned(jwt: string): string {
  const [, payload = ''] = jwt.split('.');
  return `${Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')}.${payload}.`;
}

/** The notifications of a user are their own, and the tokens here are of ann. */
async function seedsFor(route: Route): Promise<Seeds> {
  const seeds = await seedFor(route, own);
  return /^(?:notif|subscription)/.test(route.operationId) ? { ...seeds, userId: 'ann' } : seeds;
}

for (const route of apiRoutes) {
  t.test(titleOf(route), async (t) => {
    const rule = asked[route.credential];
    if (rule === undefined) return t.fail(`say in this file what the credential ${route.credential} lets in`);
    const verdict = (kind: Kind): Fate => rule(kind, route);
    let seeds = await seedsFor(route);
    for (const kind of route.credential === 'public' ? few : kinds) {
      pace(route, service);
      const { method, path, ...call } = callOf(route, seeds);
      const headers = {
        ...call.headers,
        ...(kind.name === ADMIN_KIND ? bearer(await adminSession(service)) : kind.headers),
      };
      const answer = await own.request(method, path, { ...call, key: null, headers });
      holdsFate(t, kind.name, route, verdict(kind), answer);
      // What was done once, such as a deletion, can't be done again.
      if (answer.status < 300) seeds = await seedsFor(route);
    }
  });
}

function holdsFate(
  t: Test,
  name: string,
  route: Route,
  fate: Fate,
  { status, headers, json, text }: TestResponse<unknown>,
): void {
  const expected = fate === 'own' ? successes(route) : fate === 'foreign' ? foreignStatus(route) : [fate];
  const schema = route.responses[status];
  const faults = [
    expected.includes(status) ? '' : `${status} ${text.slice(0, 200)}`,
    schema === undefined || Check(schema, json) ? '' : `not as its schema says: ${text.slice(0, 500)}`,
    status < 400 || Object.keys(json as object).join() === 'error' ? '' : 'not exactly {error}',
    status < 400 || /^[a-z_]+$/.test(headers.get('x-error-code') ?? '') ? '' : 'no X-Error-Code',
    status !== 401 || headers.get('www-authenticate') === 'Bearer' ? '' : 'no WWW-Authenticate',
  ];
  t.strictSame(
    faults.filter((fault) => fault !== ''),
    [],
    `${name} | ${expected.join(' or ')}`,
  );
}
