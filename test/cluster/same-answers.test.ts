import t from 'tap';
import { Random } from '../fuzz/random.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { startService } from '../helpers/service.ts';
import { SameAnswers, type Step } from './same-answers.ts';

// Random requests get the same answers from a worker on a folder and from two on PostgreSQL, each of which has the
// store open by itself, as nodes do. `SAME_SEED=7 SAME_STEPS=5000` chooses others and more of them.

const SEED = Number(process.env['SAME_SEED'] ?? Date.now() % 1_000_000);
const STEPS = Number(process.env['SAME_STEPS'] ?? 80);
const USERS = ['ann', 'bob', 'Zoë 😀', 'user/1'];
const ROOMS = ['lobby', 'docs/a', 'Ünï 😀'];
const TEXTS = ['Hello', 'nul \u0000', 'line\nbreak\r\n', '\\ "quoted" \u2028', '👩‍👩‍👧', 'x'.repeat(300), ''];
const METADATA = [{}, { key: 'value' }, { key: 1e21, b: false }, { key: '\u0000' }];
const path = encodeURIComponent;

t.test(
  `a folder and PostgreSQL give the same answers to ${STEPS} requests of seed ${SEED}`,
  { skip: skipWithout(...POSTGRES) },
  async (t) => {
    const postgres = await startPostgres(t);
    const folder = await startService(t);
    const nodes = await startService(t, { workers: 2, flags: { 'store.url': postgres.url } });
    const random = new Random(SEED);
    const same = new SameAnswers(random, [await folder.tenant('same'), await nodes.tenant('same')]);
    for (const user of USERS.slice(0, 3)) await same.ask(t, { method: 'PUT', path: `/users/${path(user)}`, body: {} });
    for (let n = 0; n < STEPS && t.passing(); n++) await same.ask(t, nextStep(random, same));
    for (const room of ROOMS) {
      await same.ask(t, { method: 'GET', path: `/rooms/${path(room)}?include=comments,users` });
      await same.ask(t, { method: 'GET', path: `/rooms/${path(room)}/threads?sort=updatedAt&order=asc` });
    }
    for (const list of ['/rooms', '/users', '/moderation?state=reported'])
      await same.ask(t, { method: 'GET', path: list });
    await same.ask(t, { method: 'GET', path: '/events?since=0&limit=1000' });
  },
);

function nextStep(random: Random, same: SameAnswers): Step {
  const user = random.pick(USERS);
  const room = path(random.pick(ROOMS));
  const [thread, comment] = [same.known('th'), same.known('cm')].map(path);
  const body = random.chance(0.95) ? random.pick(TEXTS) : 7;
  const text = { body, mentions: random.chance(0.3) ? [random.pick(USERS)] : undefined };
  const written = { userId: user, ...text, metadata: random.chance(0.3) ? random.pick(METADATA) : undefined };
  const limit = `limit=${1 + random.below(3)}&order=${random.pick(['asc', 'desc'])}&sort=${random.pick(['createdAt', 'updatedAt'])}`;
  const query = random.chance(0.5)
    ? `?${limit}${random.chance(0.5) ? `&cursor=${path(same.known('cursor'))}` : ''}`
    : `?include=users&participantId=${path(user)}`;
  const idempotencyKey = random.chance(0.3) ? `key-${random.below(20)}` : undefined;
  return random.pick<() => Step>([
    () => ({ method: 'POST', path: `/rooms/${room}/threads`, body: written, idempotencyKey }),
    () => ({ method: 'POST', path: `/threads/${thread}/comments`, body: written, idempotencyKey }),
    () => ({ method: 'POST', path: `/threads/${thread}/comments`, body: written }),
    () => ({
      method: 'POST',
      path: `/comments/${comment}/reactions`,
      body: { userId: user, emoji: '👍' },
      idempotencyKey,
    }),
    () => ({ method: 'POST', path: `/comments/${comment}/report`, body: { userId: user, reason: 'spam' } }),
    () => ({ method: 'PATCH', path: `/comments/${comment}`, body: random.chance(0.7) ? text : { metadata: { a: 1 } } }),
    () => ({ method: 'PATCH', path: `/threads/${thread}`, body: { resolved: random.chance(0.5), userId: user } }),
    () => ({ method: 'PATCH', path: `/rooms/${room}`, body: { metadata: random.pick(METADATA) } }),
    () => ({ method: 'PUT', path: `/users/${path(user)}`, body: { name: random.pick(TEXTS) } }),
    () => ({ method: 'PUT', path: `/rooms/${room}/p2p/state`, body: { state: random.pick(['AAA=', 'AQID', '!']) } }),
    () => ({ method: 'GET', path: `/rooms/${room}/p2p/state` }),
    () => ({ method: 'GET', path: `/rooms/${room}/threads${query}` }),
    () => ({ method: 'GET', path: `/threads/${thread}/comments${query}` }),
    () => ({ method: 'GET', path: `/threads/${thread}?include=users` }),
    () => ({ method: 'GET', path: `/users?${limit}` }),
    () => ({ method: 'DELETE', path: `/comments/${comment}` }),
    () => {
      const removed = [`/threads/${thread}`, `/rooms/${room}`, `/users/${path(user)}`, `/rooms/${room}/p2p/state`];
      return { method: random.chance(0.3) ? 'DELETE' : 'GET', path: random.pick(removed) };
    },
  ])();
}
