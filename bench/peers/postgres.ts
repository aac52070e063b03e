/**
 * The storage that a team would write with node-postgres: a pool, one transaction per write, and every statement
 * prepared on each connection. With notifications, a comment adds one for each other user who has commented in its
 * thread, in the same transaction.
 */
import { Pool, type PoolClient } from 'pg';
import {
  type CommentInput,
  type CommentRow,
  fromRow,
  newComment,
  newId,
  type Notified,
  type Storage,
  type Written,
} from './comment.ts';

const schema = `
  CREATE TABLE IF NOT EXISTS users (id text PRIMARY KEY, name text, created_at text NOT NULL);
  CREATE TABLE IF NOT EXISTS threads (
    id text PRIMARY KEY, room_id text NOT NULL, resolved boolean NOT NULL DEFAULT false, user_id text NOT NULL REFERENCES users(id),
    comment_count integer NOT NULL DEFAULT 0, created_at text NOT NULL, updated_at text NOT NULL);
  CREATE TABLE IF NOT EXISTS comments (
    id text PRIMARY KEY, thread_id text NOT NULL REFERENCES threads(id), user_id text NOT NULL REFERENCES users(id),
    body text NOT NULL, mentions text NOT NULL, created_at text NOT NULL, edited_at text);
  CREATE INDEX IF NOT EXISTS comments_of_thread ON comments (thread_id, created_at, id);
  CREATE TABLE IF NOT EXISTS events (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, type text NOT NULL, room_id text NOT NULL, thread_id text NOT NULL,
    at text NOT NULL, data text NOT NULL);
  CREATE TABLE IF NOT EXISTS participants (thread_id text NOT NULL, user_id text NOT NULL, PRIMARY KEY (thread_id, user_id));
  CREATE TABLE IF NOT EXISTS notifications (
    id text PRIMARY KEY, user_id text NOT NULL, thread_id text NOT NULL, comment_id text NOT NULL, actor_id text NOT NULL,
    created_at text NOT NULL, read_at text);
  CREATE INDEX IF NOT EXISTS notifications_of_user ON notifications (user_id, created_at);
  CREATE INDEX IF NOT EXISTS unread_of_user ON notifications (user_id) WHERE read_at IS NULL;`;

/** The statements, each prepared once on a connection under its name. */
const statements = {
  putUser:
    'INSERT INTO users (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET name = excluded.name',
  userExists: 'SELECT 1 FROM users WHERE id = $1',
  roomOfThread: 'SELECT room_id AS "roomId" FROM threads WHERE id = $1',
  insertThread: 'INSERT INTO threads (id, room_id, user_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)',
  insertComment:
    'INSERT INTO comments (id, thread_id, user_id, body, mentions, created_at) VALUES ($1, $2, $3, $4, $5, $6)',
  bumpThread: 'UPDATE threads SET comment_count = comment_count + 1, updated_at = $1 WHERE id = $2',
  insertEvent: 'INSERT INTO events (type, room_id, thread_id, at, data) VALUES ($1, $2, $3, $4, $5) RETURNING seq',
  addParticipant: 'INSERT INTO participants (thread_id, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
  notifyParticipants: `INSERT INTO notifications (id, user_id, thread_id, comment_id, actor_id, created_at)
    SELECT $1 || user_id, user_id, $2, $1, $3, $4 FROM participants WHERE thread_id = $2 AND user_id <> $3
    RETURNING id, user_id AS "userId"`,
  commentsOfThread: `SELECT id, thread_id AS "threadId", user_id AS "userId", body, mentions, created_at AS "createdAt",
    edited_at AS "editedAt" FROM comments WHERE thread_id = $1 ORDER BY created_at, id`,
} as const;

/** Connections of the pool: on the machine of the last measurement, more or fewer were not faster. */
const POOL = 16;

/** Opens the database at the URL, and creates its tables. */
export async function openPostgres(url: string, withNotifications: boolean): Promise<Storage> {
  const pool = new Pool({ connectionString: url, max: POOL });
  await pool.query(schema);

  return {
    putUser: async (id, name) => {
      await run(pool, 'putUser', [id, name, new Date().toISOString()]);
    },
    createThread: (roomId, input) =>
      inTransaction(pool, async (client) => {
        if (!(await exists(client, input.userId))) return 'no user';
        const threadId = newId();
        const at = new Date().toISOString();
        await run(client, 'insertThread', [threadId, roomId, input.userId, at, at]);
        return write(client, { roomId, threadId, input, at, withNotifications });
      }),
    createComment: (threadId, input) =>
      inTransaction(pool, async (client) => {
        const [thread] = await run<{ roomId: string }>(client, 'roomOfThread', [threadId]);
        if (thread === undefined) return 'no thread';
        if (!(await exists(client, input.userId))) return 'no user';
        const at = new Date().toISOString();
        return write(client, { roomId: thread.roomId, threadId, input, at, withNotifications });
      }),
    listComments: async (threadId) => {
      if ((await run(pool, 'roomOfThread', [threadId])).length === 0) return null;
      return (await run<CommentRow>(pool, 'commentsOfThread', [threadId])).map(fromRow);
    },
  };
}

async function run<Row extends object>(
  client: Pool | PoolClient,
  name: keyof typeof statements,
  values: readonly (string | null)[],
): Promise<Row[]> {
  return (await client.query<Row>({ name, text: statements[name], values: [...values] })).rows;
}

async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

async function exists(client: PoolClient, userId: string): Promise<boolean> {
  return (await run(client, 'userExists', [userId])).length > 0;
}

interface Write {
  readonly roomId: string;
  readonly threadId: string;
  readonly input: CommentInput;
  readonly at: string;
  readonly withNotifications: boolean;
}

async function write(client: PoolClient, { roomId, threadId, input, at, withNotifications }: Write): Promise<Written> {
  const comment = newComment(threadId, input, at);
  const { id, userId, body, mentions } = comment;
  const addEvent = async (type: string, data: object): Promise<number> => {
    const [event] = await run<{ seq: string }>(client, 'insertEvent', [
      type,
      roomId,
      threadId,
      at,
      JSON.stringify(data),
    ]);
    return Number(event?.seq);
  };
  await run(client, 'insertComment', [id, threadId, userId, body, JSON.stringify(mentions), at]);
  await run(client, 'bumpThread', [at, threadId]);
  const seq = await addEvent('comment.created', comment);
  const notified: Notified[] = [];
  if (withNotifications) {
    const added = await run<Omit<Notified, 'seq'>>(client, 'notifyParticipants', [id, threadId, userId, at]);
    for (const notification of added)
      notified.push({ ...notification, seq: await addEvent('notification.created', notification) });
    await run(client, 'addParticipant', [threadId, userId]);
  }
  return { comment, roomId, seq, notified };
}
