import { operationExamples } from '../../src/http/openapi/examples/operations.ts';
import { hostileText, hostileValue, jsonBytes, mutated } from './hostile.ts';
import type { IdKind, KnownIds } from './ids.ts';
import type { Random } from './random.ts';

/** An operation of the OpenAPI document. */
export interface Operation {
  readonly operationId: string;
  readonly method: string;
  /** With `{name}` for parameters, from the root of the server. */
  readonly path: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
}

/** Headers by the name of the credential; see `credentialsOf` in target.ts. */
export type Credentials = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface FuzzRequest {
  readonly operationId: string;
  readonly credential: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

export interface RequestSource {
  readonly operations: readonly Operation[];
  readonly credentials: Credentials;
  readonly ids: KnownIds;
  readonly files: readonly { readonly type: string; readonly bytes: Buffer }[];
}

/** How often an operation is chosen beside others: what makes records must outweigh what removes them. */
const WEIGHTS: Readonly<Record<string, number>> = {
  'threads.create': 8,
  'comments.create': 10,
  'reactions.create': 5,
  'users.put': 4,
  'files.upload': 3,
  'admin.login': 0.1,
  'rooms.delete': 0.2,
  'threads.delete': 0.5,
};

/** Past 16 KiB of head the core answers by itself, with a page of its own. */
const LONGEST_QUERY = 12_000;

/** A request made of one operation, valid or not, with a credential of its kind or not. */
export function nextRequest(random: Random, source: RequestSource): FuzzRequest {
  const operation = pickOperation(random, source.operations);
  const credential = pickCredential(random, operation, source.credentials);
  const { body, type } = bodyOf(random, operation, source);
  const query = queryOf(random, operation, source.ids);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    escaped(source.ids.pick(random, name as IdKind)),
  );
  const method = random.chance(0.02)
    ? random.pick(['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'])
    : operation.method;
  return {
    operationId: operation.operationId,
    credential,
    method,
    path: random.chance(0.01)
      ? `${path}${random.pick(['/', '//', '/%00', '/..', '%', '%E0%A4%A', '?', '?limit=&limit='])}`
      : path + query,
    headers: {
      ...source.credentials[credential],
      ...(type === null ? {} : { 'Content-Type': type }),
      ...oddHeaders(random, operation),
    },
    body: method === 'GET' || method === 'HEAD' ? null : body,
  };
}

function pickOperation(random: Random, operations: readonly Operation[]): Operation {
  const weightOf = ({ operationId }: Operation): number => WEIGHTS[operationId] ?? 1;
  let left = random.next() * operations.reduce((sum, operation) => sum + weightOf(operation), 0);
  for (const operation of operations) {
    left -= weightOf(operation);
    if (left <= 0) return operation;
  }
  return operations[0] as Operation;
}

function pickCredential(random: Random, { operationId }: Operation, credentials: Credentials): string {
  if (random.chance(0.1)) return random.pick(Object.keys(credentials));
  if (operationId.startsWith('admin.')) return 'admin';
  if (operationId.startsWith('files.')) return 'member';
  return random.pick(['secret', 'secret', 'secret', 'confined', 'readOnly']);
}

function queryOf(random: Random, { parameters }: Operation, ids: KnownIds): string {
  const chosen = parameters.filter((parameter) => parameter.in === 'query' && random.chance(0.25));
  if (chosen.length === 0) return '';
  const fields = chosen.map(({ name }) => `${name}=${escaped(queryValue(random, name, ids))}`);
  while (fields.length > 1 && fields.join('&').length > LONGEST_QUERY) fields.pop();
  return `?${fields.join('&')}`;
}

function queryValue(random: Random, name: string, ids: KnownIds): string {
  if (random.chance(0.3)) return hostileText(random);
  switch (name) {
    case 'limit':
      return String(random.below(1_200) - 2);
    case 'sort':
      return random.pick(['createdAt', 'updatedAt']);
    case 'order':
      return random.pick(['asc', 'desc']);
    case 'userId':
    case 'participantId':
    case 'mentions':
      return ids.pick(random, 'userId');
    case 'include':
      return 'comments';
    case 'merge':
      return 'yjs';
    case 'sv':
      return random.pick(['AA', 'AAAA', 'AQID', 'gA', '_____w8']);
    case 'resolved':
      return random.pick(['true', 'false']);
    default:
      return random.pick(['1', '0', 'ann', '2026-01-02T03:04:05.678Z', 'key=value']);
  }
}

function bodyOf(
  random: Random,
  operation: Operation,
  { ids, files }: RequestSource,
): { body: Buffer | null; type: string | null } {
  if (operation.operationId === 'files.upload') return formOf(random, files);
  if (operation.operationId === 'p2pState.put' && random.chance(0.5)) {
    return {
      body: Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256))),
      type: 'application/octet-stream',
    };
  }
  const example = operationExamples[operation.operationId]?.body;
  if (example === undefined && random.chance(0.95)) return { body: null, type: null };
  const named = withKnownIds(random, example ?? {}, ids);
  const value = random.chance(0.5) ? named : random.chance(0.95) ? mutated(random, named) : hostileValue(random);
  const type = random.chance(0.97)
    ? 'application/json'
    : random.pick([
        'text/plain',
        'application/json; charset=latin1',
        'multipart/form-data',
        'application/x-www-form-urlencoded',
        '',
      ]);
  return { body: jsonBytes(random, value), type };
}

/** The example with ids that the server knows in the fields that take one. */
function withKnownIds(random: Random, example: unknown, ids: KnownIds): unknown {
  if (typeof example !== 'object' || example === null || Array.isArray(example)) return example;
  const copy: Record<string, unknown> = { ...example };
  if ('userId' in copy) copy['userId'] = ids.pick(random, 'userId');
  if ('slug' in copy) copy['slug'] = `fuzz-${random.below(30)}`;
  if ('body' in copy && random.chance(0.1)) copy['attachmentIds'] = [ids.pick(random, 'fileId')];
  if ('body' in copy && random.chance(0.05)) copy['id'] = `chosen-${random.below(500)}`;
  return copy;
}

function formOf(random: Random, files: RequestSource['files']): { body: Buffer; type: string } {
  const file = random.pick(files);
  const bytes = Buffer.from(file.bytes);
  if (random.chance(0.4))
    for (let i = random.below(8); i >= 0; i--) bytes[random.below(bytes.byteLength)] = random.below(256);
  const content = random.chance(0.1) ? bytes.subarray(0, random.below(bytes.byteLength)) : bytes;
  const type = random.chance(0.85)
    ? file.type
    : random.pick(['image/svg+xml', 'text/html', 'audio/ogg', 'video/mp4', 'image/jpeg']);
  const name = random.chance(0.7) ? 'name.bin' : headerSafe(hostileText(random)).replaceAll('"', '');
  const boundary = random.chance(0.95) ? 'b' : 'another';
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="${random.chance(0.95) ? 'file' : 'other'}"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`;
  const tail = random.chance(0.95) ? '\r\n--b--\r\n' : random.pick(['', '\r\n--b', '\r\n--b\r\n', '\r\n--b--']);
  return {
    body: Buffer.concat([Buffer.from(head), content, Buffer.from(tail)]),
    type: random.chance(0.97) ? 'multipart/form-data; boundary=b' : 'multipart/form-data',
  };
}

const ODD_HEADERS = [
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'If-Range',
  'Range',
  'Accept',
  'Accept-Encoding',
  'Origin',
  'X-Request-Id',
  'X-Forwarded-For',
  'Last-Event-ID',
] as const;

function oddHeaders(random: Random, { operationId, parameters }: Operation): Record<string, string> {
  const headers: Record<string, string> = {};
  if (parameters.some(({ name }) => name === 'Idempotency-Key') && random.chance(0.2))
    headers['Idempotency-Key'] = `repeat-${random.below(100)}`;
  if (random.chance(0.2)) headers['Accept-Encoding'] = 'gzip';
  if (random.chance(0.1))
    headers[random.pick(ODD_HEADERS)] = headerSafe(
      random.chance(0.5)
        ? hostileText(random)
        : random.pick([
            '*',
            '"1-abc"',
            'bytes=0-3',
            'bytes=5-1',
            'application/octet-stream',
            'gzip;q=0',
            'https://app.example.com',
          ]),
    );
  if (operationId === 'events.list' && random.chance(0.2)) headers['Accept'] = 'text/event-stream';
  return headers;
}

/** What Node's client sends as the value of a header. */
function headerSafe(text: string): string {
  return text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '').slice(0, 500);
}

function escaped(text: string): string {
  // By way of UTF-8, which replaces lone surrogates.
  return encodeURIComponent(Buffer.from(text).toString());
}
