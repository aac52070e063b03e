/**
 * The storage that a team would write with node-postgres: a pool, one transaction per write, and every statement
 * prepared on each connection.
 */
import { Pool, type PoolClient } from 'pg';
import {
  type CommentInput,
  type CommentRow,
  fromRow,
  newComment,
  newId,
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
    at text NOT NULL, data text NOT NULL);`;

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
  commentsOfThread: `SELECT id, thread_id AS "threadId", user_id AS "userId", body, mentions, created_at AS "createdAt",
    edited_at AS "editedAt" FROM comments WHERE thread_id = $1 ORDER BY created_at, id`,
} as const;

/** Connections of the pool: on the machine of the last measurement, more or fewer were not faster. */
const POOL = 16;

/** Opens the database at the URL, and creates its tables. */
export async function openPostgres(url: string): Promise<Storage> {
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
        return write(client, roomId, threadId, input, at);
      }),
    createComment: (threadId, input) =>
      inTransaction(pool, async (client) => {
        const [thread] = await run<{ roomId: string }>(client, 'roomOfThread', [threadId]);
        if (thread === undefined) return 'no thread';
        if (!(await exists(client, input.userId))) return 'no user';
        return write(client, thread.roomId, threadId, input, new Date().toISOString());
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

async function write(
  client: PoolClient,
  roomId: string,
  threadId: string,
  input: CommentInput,
  at: string,
): Promise<Written> {
  const comment = newComment(threadId, input, at);
  const { id, userId, body, mentions } = comment;
  await run(client, 'insertComment', [id, threadId, userId, body, JSON.stringify(mentions), at]);
  await run(client, 'bumpThread', [at, threadId]);
  const [event] = await run<{ seq: string }>(client, 'insertEvent', [
    'comment.created',
    roomId,
    threadId,
    at,
    JSON.stringify(comment),
  ]);
  return { comment, roomId, seq: Number(event?.seq) };
}
