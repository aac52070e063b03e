/** The storage that a team would write with better-sqlite3: WAL, `synchronous=FULL`, every statement prepared once. */
import Database from 'better-sqlite3';
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
  CREATE TABLE IF NOT EXISTS users (id TEXT PRIMARY KEY, name TEXT, created_at TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS threads (
    id TEXT PRIMARY KEY, room_id TEXT NOT NULL, resolved INTEGER NOT NULL DEFAULT 0, user_id TEXT NOT NULL REFERENCES users(id),
    comment_count INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS comments (
    id TEXT PRIMARY KEY, thread_id TEXT NOT NULL REFERENCES threads(id), user_id TEXT NOT NULL REFERENCES users(id),
    body TEXT NOT NULL, mentions TEXT NOT NULL, created_at TEXT NOT NULL, edited_at TEXT);
  CREATE INDEX IF NOT EXISTS comments_of_thread ON comments (thread_id, created_at, id);
  CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, type TEXT NOT NULL, room_id TEXT NOT NULL, thread_id TEXT NOT NULL, at TEXT NOT NULL, data TEXT NOT NULL);`;

/** Opens the database; every method is one transaction that is on disk when it returns. */
export function openSqlite(file: string): Storage {
  const db = new Database(file);
  for (const setting of [
    'journal_mode = WAL',
    'synchronous = FULL',
    'cache_size = -65536',
    'mmap_size = 268435456',
    'temp_store = MEMORY',
  ]) {
    db.pragma(setting);
  }
  db.exec(schema);

  const putUser = db.prepare(
    'INSERT INTO users (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name',
  );
  const userExists = db.prepare<[string]>('SELECT 1 FROM users WHERE id = ?').pluck();
  const roomOfThread = db.prepare<[string], string>('SELECT room_id FROM threads WHERE id = ?').pluck();
  const insertThread = db.prepare(
    'INSERT INTO threads (id, room_id, user_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?)',
  );
  const insertComment = db.prepare(
    'INSERT INTO comments (id, thread_id, user_id, body, mentions, created_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const bumpThread = db.prepare('UPDATE threads SET comment_count = comment_count + 1, updated_at = ? WHERE id = ?');
  const insertEvent = db.prepare('INSERT INTO events (type, room_id, thread_id, at, data) VALUES (?, ?, ?, ?, ?)');
  const commentsOfThread = db.prepare<[string], CommentRow>(
    `SELECT id, thread_id AS threadId, user_id AS userId, body, mentions, created_at AS createdAt, edited_at AS editedAt
     FROM comments WHERE thread_id = ? ORDER BY created_at, id`,
  );

  function write(roomId: string, threadId: string, input: CommentInput, at: string): Written {
    const comment = newComment(threadId, input, at);
    insertComment.run(comment.id, threadId, comment.userId, comment.body, JSON.stringify(comment.mentions), at);
    bumpThread.run(at, threadId);
    const event = insertEvent.run('comment.created', roomId, threadId, at, JSON.stringify(comment));
    return { comment, roomId, seq: Number(event.lastInsertRowid), notified: [] };
  }

  const createComment = db.transaction((threadId: string, input: CommentInput): Written | 'no thread' | 'no user' => {
    const roomId = roomOfThread.get(threadId);
    if (roomId === undefined) return 'no thread';
    if (userExists.get(input.userId) === undefined) return 'no user';
    return write(roomId, threadId, input, new Date().toISOString());
  });

  const createThread = db.transaction((roomId: string, input: CommentInput): Written | 'no user' => {
    if (userExists.get(input.userId) === undefined) return 'no user';
    const threadId = newId();
    const at = new Date().toISOString();
    insertThread.run(threadId, roomId, input.userId, at, at);
    return write(roomId, threadId, input, at);
  });

  return {
    createComment: async (threadId, input) => createComment(threadId, input),
    createThread: async (roomId, input) => createThread(roomId, input),
    putUser: async (id, name) => {
      putUser.run(id, name, new Date().toISOString());
    },
    listComments: async (threadId) => {
      if (roomOfThread.get(threadId) === undefined) return null;
      return commentsOfThread.all(threadId).map(fromRow);
    },
  };
}
