/**
 * The server that a team would write: Fastify, a database and ws in one process, with the same functions and
 * responses. It has no rate limit, idempotency, replay or second process, which is to its advantage; notifications only
 * where it is told to.
 */
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Fastify, { type FastifyReply } from 'fastify';
import type { CommentInput, Storage, Written } from './comment.ts';
import { serveSockets } from './sockets.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    data: { type: 'string', default: '.' },
    database: { type: 'string', default: '' },
    secretKey: { type: 'string', default: 'sk_bench' },
    publishableKey: { type: 'string', default: 'pk_bench' },
    jwtSecret: { type: 'string', default: '' },
    /** Notifies the other users of a thread, which only the storage in PostgreSQL can. */
    notifications: { type: 'boolean', default: false },
  },
});

/** A URL of PostgreSQL, or nothing for SQLite in the folder. Only the one that is used is loaded. */
async function openStorage(): Promise<Storage> {
  if (values.database === '') return (await import('./sqlite.ts')).openSqlite(join(values.data, 'comments.sqlite'));
  return (await import('./postgres.ts')).openPostgres(values.database, values.notifications);
}

const storage = await openStorage();
const app = Fastify({ logger: false });
const sockets = serveSockets(app.server, { publishableKey: values.publishableKey, jwtSecret: values.jwtSecret });

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
const credential = sha256(`Bearer ${values.secretKey}`);

app.addHook('onRequest', (request, reply, next) => {
  if (request.url === '/readyz' || timingSafeEqual(sha256(request.headers.authorization ?? ''), credential))
    return next();
  void reply.code(401).send({ error: 'The secret key is missing or wrong' });
});

const commentBody = {
  type: 'object',
  required: ['userId', 'body'],
  properties: {
    userId: { type: 'string', minLength: 1, maxLength: 128 },
    body: { type: 'string', minLength: 1, maxLength: 10_000 },
    mentions: { type: 'array', maxItems: 50, items: { type: 'string', maxLength: 128 } },
  },
} as const;
const emptyArray = { type: 'array', items: {} } as const;
const comment = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    threadId: { type: 'string' },
    userId: { type: 'string' },
    body: { type: 'string' },
    mentions: { type: 'array', items: { type: 'string' } },
    attachments: emptyArray,
    reactions: emptyArray,
    metadata: { type: 'object', additionalProperties: true },
    createdAt: { type: 'string' },
    editedAt: { type: ['string', 'null'] },
  },
} as const;
const created = { type: 'object', properties: { comment } } as const;
const list = { type: 'object', properties: { items: { type: 'array', items: comment } } } as const;

function announce({ comment, roomId, seq, notified }: Written): void {
  const { threadId, userId, createdAt: at } = comment;
  const actor = { userId, via: 'rest' };
  const eventOf = (type: string, position: number, data: object): string =>
    JSON.stringify({ type, seq: position, eventId: `evt_${randomUUID()}`, at, roomId, threadId, actor, data });
  sockets.broadcast(eventOf('comment.created', seq, comment));
  for (const notification of notified)
    sockets.send(notification.userId, eventOf('notification.created', notification.seq, notification));
}

function unknownUser(reply: FastifyReply, userId: string): FastifyReply {
  return reply.code(400).send({ error: `Unknown user: ${userId}` });
}

app.get('/readyz', (_request, reply) => reply.send({ status: 'ok' }));

app.put<{ Params: { id: string }; Body: { name?: string } }>('/api/v1/users/:id', async (request, reply) => {
  await storage.putUser(request.params.id, request.body.name ?? null);
  return reply.send({ user: { id: request.params.id } });
});

app.post<{ Params: { id: string }; Body: CommentInput }>(
  '/api/v1/rooms/:id/threads',
  { schema: { body: commentBody } },
  async (request, reply) => {
    const written = await storage.createThread(request.params.id, request.body);
    if (written === 'no user') return unknownUser(reply, request.body.userId);
    announce(written);
    return reply
      .code(201)
      .send({ thread: { id: written.comment.threadId, roomId: written.roomId, comments: [written.comment] } });
  },
);

app.post<{ Params: { id: string }; Body: CommentInput }>(
  '/api/v1/threads/:id/comments',
  { schema: { body: commentBody, response: { 201: created } } },
  async (request, reply) => {
    const written = await storage.createComment(request.params.id, request.body);
    if (written === 'no thread') return reply.code(404).send({ error: 'Thread not found' });
    if (written === 'no user') return unknownUser(reply, request.body.userId);
    announce(written);
    return reply.code(201).send({ comment: written.comment });
  },
);

app.get<{ Params: { id: string } }>(
  '/api/v1/threads/:id/comments',
  { schema: { response: { 200: list } } },
  async (request, reply) => {
    const items = await storage.listComments(request.params.id);
    return items === null ? reply.code(404).send({ error: 'Thread not found' }) : reply.send({ items });
  },
);

await app.listen({ host: '127.0.0.1', port: Number(values.port) });
console.log('ready');
