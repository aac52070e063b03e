import { readFileSync } from 'node:fs';
import t from 'tap';
import { messages } from '../../src/realtime/messages/messages.ts';
import { picture, wav, webm } from '../fixtures/media.ts';
import { KnownIds } from './ids.ts';
import { MESSAGE_TYPES } from './messages.ts';
import { Random } from './random.ts';
import { type FuzzRequest, nextRequest, type Operation, type RequestSource } from './requests.ts';
import { FuzzSocket } from './sockets.ts';
import { type Answer, startTarget, type Target } from './target.ts';

// Sends requests and frames that are made from the examples of the OpenAPI document and of the WebSocket, as they are
// and mutated, with every kind of credential, to a real server. The answers may refuse; they must not fail.
//
//   FUZZ_RUNS=1000000 FUZZ_SEED=7 npm test -- --timeout 86400 test/fuzz/fuzz.test.ts
//
// The seed decides what is sent. Answers decide which ids are known, so a run is repeated in kind, not byte by byte.

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 5_000);
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000);
/** What is made at once, before its answers are learnt from and the probes are read. */
const BATCH = 500;
const AT_ONCE = 16;
const FRAMES_SHARE = 0.4;
/** What 1 000 batches may leave behind: caches are bounded by 64 MB in each of two workers. */
const MOST_GROWTH_BYTES = 160 * 1024 * 1024;
/**
 * Slow turns that may happen once each, such as for the first use of a module in each of two workers. One that happens
 * again with the same request is a failure.
 */
const MOST_SINGLE_SLOW_TURNS = 6;
const ALLOWED = new Set([200, 201, 204, 206, 304, 400, 401, 403, 404, 409, 412, 413, 416, 429]);
/** Operations that may refuse with 503, because work outside of the event loop did not end in time. */
const MAY_BE_BUSY = new Set(['files.upload', 'p2pState.put', 'p2pState.get']);

t.setTimeout(0);

t.test('the frames made here cover every type of message', (t) => {
  t.strictSame(MESSAGE_TYPES.toSorted(), [...messages.keys()].toSorted());
  t.end();
});

t.test(`${RUNS} generated requests and frames with seed ${SEED} find no failure`, async (t) => {
  const target = await startTarget();
  t.teardown(() => target.stop());
  const ids = new KnownIds();
  for (const number of [0, 1, 10, 2, 3]) ids.add('roomId', `room-${number}`);
  for (const userId of ['ann', 'bob', 'cid', 'dee']) ids.add('userId', userId);
  ids.add('envId', target.cluster.keys.environment.id);
  const files = [
    { type: 'image/png', bytes: await picture(20, 20).png().toBuffer() },
    { type: 'image/jpeg', bytes: await picture(20, 20).jpeg().toBuffer() },
    { type: 'audio/wav', bytes: wav(0.1) },
    { type: 'audio/webm', bytes: webm(3) },
  ];
  const source: RequestSource = { operations: operations(), credentials: target.credentials, ids, files };
  const sockets = ['member', 'member', 'moderator', 'viewer', 'guest'].map(
    (name) =>
      new FuzzSocket(`${target.cluster.url.replace('http', 'ws')}/api/v1/ws`, target.credentials[name] ?? {}, ids),
  );
  t.teardown(() => sockets.forEach((socket) => socket.end()));

  const random = new Random(SEED);
  const problems: string[] = [];
  const statuses = new Map<number, number>();
  let slowSeen = 0;
  let first: number | null = null;
  for (let done = 0; done < RUNS && problems.length < 10; done += BATCH) {
    const size = Math.min(BATCH, RUNS - done);
    const frames = Math.round(size * FRAMES_SHARE);
    const requests = Array.from({ length: size - frames }, () => nextRequest(random, source));
    const [answers] = await Promise.all([sendAll(target, requests), sendFrames(random, sockets, frames, problems)]);
    for (const [i, answer] of answers.entries()) {
      const request = requests[i] as FuzzRequest;
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const problem = problemOf(request, answer);
      if (problem !== null) problems.push(`${problem}: ${show(request)}`);
      else if (answer.status < 300 && 'body' in answer && request.credential !== 'admin')
        ids.learn(parsed(answer.body));
    }
    if (target.slowTurns().length > slowSeen) {
      const cause = await causeOfSlowTurn(target, requests);
      if (cause !== null) problems.push(cause);
      slowSeen = target.slowTurns().length;
    }
    if (done >= RUNS / 5) first ??= await target.settledBytes();
  }
  t.comment(`answers by status: ${JSON.stringify(Object.fromEntries([...statuses].toSorted(([a], [b]) => a - b)))}`);
  t.strictSame(problems, [], 'no failure, no hung request, no slow turn of an event loop');
  t.ok(
    target.slowTurns().length <= MOST_SINGLE_SLOW_TURNS,
    `few turns of an event loop are slow: ${JSON.stringify(target.slowTurns())}`,
  );
  t.ok((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) > RUNS / 10, 'a good part of the requests is accepted');
  const grown = (await target.settledBytes()) - (first ?? 0);
  t.ok(grown < MOST_GROWTH_BYTES, `memory comes back: ${Math.round(grown / 1024 / 1024)} MB more in use at the end`);
  const errors = target.cluster.log().filter(({ level }) => level === 'error' || level === 'fatal');
  t.strictSame(errors.slice(0, 3), [], 'nothing is logged as an error');
});

function operations(): Operation[] {
  const { paths } = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId?: string; parameters?: Operation['parameters'] }>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId, parameters = [] }]) =>
      operationId === undefined
        ? []
        : [
            {
              operationId,
              parameters,
              method: method.toUpperCase(),
              path: path.startsWith('/files') ? path : `/api/v1${path}`,
            },
          ],
    ),
  );
}

async function sendAll(target: Target, requests: readonly FuzzRequest[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let i = next++; i < requests.length; i = next++) answers[i] = await target.send(requests[i] as FuzzRequest);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return answers;
}

async function sendFrames(
  random: Random,
  sockets: readonly FuzzSocket[],
  count: number,
  problems: string[],
): Promise<void> {
  // Each socket chooses for itself, or their timing would change what is sent.
  const seeds = sockets.map(() => random.below(2 ** 31));
  await Promise.all(
    sockets.map(async (socket, i) => {
      const own = new Random(seeds[i] ?? 0);
      for (let left = Math.ceil(count / sockets.length); left > 0; left--) {
        const { type, frame, outcome } = await socket.step(own);
        const failed =
          outcome.kind === 'hung' ||
          (outcome.kind === 'closed' && [1006, 1011, 4500].includes(outcome.code)) ||
          (outcome.kind === 'reply' && outcome.reply.error?.code === 'internal');
        if (failed) problems.push(`${type} ${JSON.stringify(outcome)}: ${frame.toString().slice(0, 500)}`);
      }
    }),
  );
}

/** What is wrong with an answer; null when nothing is. */
function problemOf({ method, operationId }: FuzzRequest, answer: Answer): string | null {
  if ('problem' in answer) return answer.problem;
  const { status, body, type } = answer;
  if (!ALLOWED.has(status) && !(status === 503 && MAY_BE_BUSY.has(operationId)))
    return `status ${status} ${body.slice(0, 200)}`;
  if (status < 400 || method === 'HEAD') return null;
  const error = (parsed(body) as { error?: unknown } | null)?.error;
  if (typeof error === 'string' && error !== '' && !error.includes('    at ') && type.startsWith('application/json'))
    return null;
  return `${operationId} ${status} is no JSON error: ${body.slice(0, 200)}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Sends the requests of a batch again, one by one, to find the one that makes a turn slow each time; null when none
 * does.
 */
async function causeOfSlowTurn(target: Target, requests: readonly FuzzRequest[]): Promise<string | null> {
  const known = target.slowTurns().length;
  for (const request of requests) {
    await target.send(request);
    await target.send({ operationId: '', credential: 'none', method: 'GET', path: '/livez', headers: {}, body: null });
    if (target.slowTurns().length > known)
      return `a slow turn ${JSON.stringify(target.slowTurns().at(-1))} by ${show(request)}`;
  }
  return null;
}

function show({ credential, method, path, headers, body }: FuzzRequest): string {
  const { Authorization: _, 'X-Service-Key': __, 'X-Service-Token': ___, ...others } = headers;
  return `${credential} ${method} ${path.slice(0, 500)} ${JSON.stringify(others)} ${body === null ? '' : body.toString('latin1').slice(0, 500)}`;
}
