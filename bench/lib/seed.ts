import type { Target } from './target.ts';

/** Concurrent requests. */
const clients = 16;

/** Adds the users `user-0` and so on. */
export async function seedUsers(target: Target, count: number): Promise<void> {
  await spread(count, (i) => send(target, 'PUT', `/api/v1/users/user-${i}`, { name: `User ${i}` }, 200));
}

/** Creates threads, ten per room, each with this many comments. Returns their ids. */
export async function seedThreads(target: Target, count: number, comments: number): Promise<string[]> {
  const ids: string[] = [];
  await spread(count, async (i) => {
    const made = (await send(target, 'POST', `/api/v1/rooms/room-${i % (count / 10)}/threads`, comment(i, 0), 201)) as {
      thread: { id: string };
    };
    const { id } = made.thread;
    ids.push(id);
    for (let n = 1; n < comments; n += 1)
      await send(target, 'POST', `/api/v1/threads/${id}/comments`, comment(i, n), 201);
  });
  return ids;
}

/** Returns the text of a GET, which must be answered with 200. */
export async function getText(target: Target, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${target.server.port}${path}`, {
    headers: { authorization: target.authorization, 'accept-encoding': 'identity' },
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${target.name}: GET ${path} answered ${response.status}: ${text}`);
  return text;
}

function comment(thread: number, n: number): object {
  const text = 'Could we move this button a little to the left? It hides the total when the window is narrow.';
  return { userId: `user-${(thread + n) % 50}`, body: `${n + 1}. ${text}` };
}

async function send(target: Target, method: string, path: string, body: object, expected: number): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${target.server.port}${path}`, {
    method,
    headers: { 'content-type': 'application/json', authorization: target.authorization },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== expected)
    throw new Error(`${target.name}: ${method} ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

async function spread(count: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const client = async (): Promise<void> => {
    for (let i = next++; i < count; i = next++) await work(i);
  };
  await Promise.all(Array.from({ length: clients }, client));
}
