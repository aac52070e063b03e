import t, { type Test } from 'tap';
import { Check } from 'typebox/value';
import { apiRoutes } from '../../src/http/api/routes.ts';
import type { Route } from '../../src/http/api/route.ts';
import type { TestResponse } from '../helpers/http.ts';
import { RawConnection } from '../helpers/raw-http.ts';
import {
  bodyOf,
  callOf,
  credentialsFor,
  pace,
  type RouteCall,
  sampleOf,
  type SchemaNode,
  seedFor,
  type Seeds,
  successes,
  titleOf,
} from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { type Field, fieldsOf, nameOf, withField, withoutField } from '../helpers/body-fields.ts';
import type { Failure } from '../helpers/writer.ts';

// 400 for missing and invalid parameters: for every field of every JSON body, from the schemas of
// the route table.

/** 256 KiB. */
const MAX_JSON_BODY_BYTES = 262_144;

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const service = await startService(t);
const tenant = await service.tenant('bodies');

const escaped = (text: string): string => text.replaceAll(/[.[\]()*+?$^|\\]/g, '\\$&');

/** Bounds that the schemas leave to the limits of the environment. By the name of the field. */
interface Bound {
  readonly good: readonly unknown[];
  readonly bad: readonly (readonly [value: unknown, message: string | RegExp])[];
}

const text = (length: number): string => 'x'.repeat(length);
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `user ${i}`);
const keys = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key ${i}`, i]));
const UNPRINTABLE = 'must not contain control characters or lone surrogates';
const MALFORMED = 'must be well-formed Unicode, without lone surrogates';
const onlySpace = 'body must be 1 to 10000 characters, not only white space or characters that show nothing';
const selector = (name: string): Bound => ({
  good: ['', text(2048)],
  bad: [[text(2049), `position.${name} must be at most 2048 characters`]],
});

const bounds: Readonly<Record<string, Bound>> = {
  userId: {
    good: [],
    bad: [
      ['', 'userId must be 1 to 128 characters'],
      [text(129), 'userId must be 1 to 128 characters'],
      ['a\u0000', `userId ${UNPRINTABLE}`],
      ['\ud800', `userId ${MALFORMED}`],
    ],
  },
  body: {
    good: ['x', text(10_000), '😀'.repeat(5000), ` ${text(1)}\n`],
    bad: [
      ['half \ud800', `body ${MALFORMED}`],
      ['', 'body must be 1 to 10000 characters'],
      [text(10_001), 'body must be 1 to 10000 characters'],
      [`${'😀'.repeat(5000)}x`, 'body must be 1 to 10000 characters'],
      [' ', onlySpace],
      ['\n\t\u00a0\u2003\ufeff', onlySpace],
      ...[
        '\u200b',
        '\u2060',
        '\u3164',
        '\u2800',
        '\u00ad',
        '\u202e\u2066',
        '\ufe0f \u034f',
        '\u115f\uffa0',
        '\u{e0020}',
      ].map((value) => [value, onlySpace] as const),
    ],
  },
  mentions: {
    good: [[], ids(50), [text(128)], ['same', 'same']],
    bad: [
      [ids(51), 'mentions must hold at most 50 user ids'],
      [['ok', ''], 'mentions[1] must be 1 to 128 characters'],
      [['ok', 'ok', text(129)], 'mentions[2] must be 1 to 128 characters'],
      [['\udfff'], `mentions[0] ${MALFORMED}`],
    ],
  },
  metadata: {
    good: [{}, keys(50), { [text(40)]: text(4000) }, { a: -1.5e300, b: false, c: '' }],
    bad: [
      [{ a: 'x', b: '\udc00' }, `metadata.b ${MALFORMED}`],
      [{ 'a\ud800': 1 }, `metadata.a\ufffd ${MALFORMED}`],
      [keys(51), 'metadata must hold at most 50 keys'],
      [{ [text(41)]: 1 }, 'Keys of metadata must be 1 to 40 characters'],
      [{ '': 1 }, 'Keys of metadata must be 1 to 40 characters'],
      [{ long: text(4001) }, 'metadata.long must be at most 4000 characters'],
      ...[null, {}, []].map(
        (value) => [{ odd: value }, 'metadata.odd must be a string, a number or a boolean'] as const,
      ),
    ],
  },
  'position.selector': selector('selector'),
  'position.path': selector('path'),
  'position.quote': selector('quote'),
  'position.quotePrefix': selector('quotePrefix'),
  'position.quoteSuffix': selector('quoteSuffix'),
  'position.fingerprint': selector('fingerprint'),
  attachmentIds: {
    good: [[]],
    bad: [
      [ids(11), 'attachmentIds must hold at most 10 ids'],
      ...['', 'unknown', '\ud800', text(300)].map(
        (id) =>
          [[id], /^attachmentIds(?:\[0\] must be | holds ".*", which is not an upload of this environment$)/] as const,
      ),
    ],
  },
  emoji: {
    good: ['👍', '👩‍👩‍👧‍👦', '🇩🇪', '❤️', '1️⃣', ':+1:', ':shipit:', `:${text(62)}:`],
    bad: ['', ' ', 'x', '👍👍', '👍 ', ':', '::', ': :', `:${text(63)}:`, '\u0000', `👍${'\u200d👍'.repeat(20)}`].map(
      (value) => [value, 'emoji must be one emoji or a :shortcode:, 1 to 64 bytes of UTF-8'] as const,
    ),
  },
  state: {
    good: ['AA==', '+/+/'],
    bad: [
      ['', 'The state must not be empty'],
      ...['A', '====', 'AA', 'AA=', 'AA__', 'AA\n=', 'ä=='].map((value) => [value, 'state must be base64'] as const),
    ],
  },
  avatarUrl: {
    good: ['https://example.com/a.png', 'http://localhost/a'],
    bad: ['javascript:alert(1)', 'data:image/png;base64,AA', '/a.png', '', 'https://'].map(
      (value) => [value, 'avatarUrl must be an http or https address'] as const,
    ),
  },
  // Whoever logs in is told nothing of what is wrong with the address.
  'admin.login email': {
    good: [],
    bad: [
      ['', 'email must be 1 to 320 characters'],
      [text(321), 'email must be 1 to 320 characters'],
    ],
  },
  'settings.allowedOrigins': {
    good: [[], ['https://app.example.com', 'http://localhost:3000']],
    bad: ['', 'app.example.com', 'https://app.example.com/', 'https://app.example.com/path', 'null', 'javascript:0']
      .map((origin) => [[origin], /^settings\.allowedOrigins must hold origins such as https:/] as const)
      .concat(
        ['*', 'https://*.example.com', 'https://*'].map(
          (origin) =>
            [[origin], /^settings\.allowedOrigins must hold whole origins: a wildcard matches nothing/] as const,
        ),
      ),
  },
  // A channel, not an address.
  'notificationSettings.put email': { good: [], bad: [] },
  email: {
    good: ['a@b'],
    bad: ['a', 'a b@c', '@', '', 'a@b@c'].map((value) => [value, 'email must be an email address'] as const),
  },
};

/** Whether the schema itself says how long a text or list may be. */
function isBounded(schema: SchemaNode): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf.every(isBounded);
  if (schema.type === 'string')
    return schema.const !== undefined || schema.maxLength !== undefined || schema.pattern !== undefined;
  if (schema.type === 'array') return schema.maxItems !== undefined && isBounded(schema.items ?? {});
  return schema.patternProperties === undefined;
}

/** The bounds declared here for a field of a route. */
const declaredFor = (route: Route, field: Field): Bound | undefined =>
  bounds[`${route.operationId} ${nameOf(field)}`] ?? bounds[nameOf(field)];

/** The bounds that a schema says, as the words of a refusal. */
function boundsOf(field: Field): Bound {
  const { schema } = field;
  const { minLength = 0, maxLength, minimum, maximum, maxItems } = schema;
  const name = nameOf(field);
  if (schema.type === 'string' && maxLength !== undefined && !Object.keys(bounds).some((key) => key.endsWith(name))) {
    const message =
      minLength > 0
        ? `${name} must be ${minLength} to ${maxLength} characters`
        : `${name} must be at most ${maxLength} characters`;
    const tooShort: Bound['bad'] = minLength > 0 ? [[text(minLength - 1), message]] : [];
    return { good: [text(minLength), text(maxLength)], bad: [[text(maxLength + 1), message], ...tooShort] };
  }
  if (minimum !== undefined && maximum !== undefined) {
    const message = `${name} must be between ${minimum} and ${maximum}`;
    return {
      good: [minimum, maximum],
      bad: [
        [minimum - 1, message],
        [maximum + 1, message],
      ],
    };
  }
  if (schema.type === 'array' && maxItems !== undefined)
    return { good: [], bad: [[ids(maxItems + 1), `${name} must be at most ${maxItems} items`]] };
  return { good: [], bad: [] };
}

const odd: readonly unknown[] = [null, 'text', '7', 7, 1.5, -1, 1e308, true, [], [null], [7], {}, { a: null }];

const bodied = apiRoutes.filter((route) => bodyOf(route)?.type === 'object');

for (const route of bodied) {
  const schema = bodyOf(route) ?? {};
  const fields = fieldsOf(schema);

  t.test(titleOf(route), async (t) => {
    const credentials = await credentialsFor(route, tenant);
    let seeds = await seedFor(route, tenant);
    /** Sends what `change` makes of a good body. A write may use up what it is for: after each there are new seeds. */
    const send = async (
      change: (sample: unknown, seeds: Seeds) => unknown,
      headers: Readonly<Record<string, string>> = {},
    ): Promise<TestResponse<Failure>> => {
      const { method, path, body } = callOf(route, seeds);
      pace(route, service);
      const answer = await tenant.request<Failure>(method, path, {
        body: change(body, seeds),
        key: null,
        headers: { ...headers, ...credentials },
      });
      if (answer.status < 300) seeds = await seedFor(route, tenant);
      return answer;
    };
    const sendText = (change: (sample: string) => string | Buffer, headers: Readonly<Record<string, string>> = {}) =>
      send((sample) => change(JSON.stringify(sample)), headers);
    /**
     * Holds that a body is acceptable. Of logins it isn't asked: each takes half a second, and any is refused or not
     * for other reasons.
     */
    const accepts = async (t: Test, what: string, ask: () => Promise<TestResponse<unknown>>): Promise<void> => {
      if (route.rateLimit === 'login') return;
      const answer = await ask();
      t.ok(successes(route).includes(answer.status), what, { found: `${answer.status} ${answer.text.slice(0, 200)}` });
    };

    for (const field of fields) {
      const name = nameOf(field);
      await t.test(`${name} | ${describe(field.schema)} | ${field.required ? 'required' : 'optional'}`, async (t) => {
        const declared = declaredFor(route, field);
        const put = (value: unknown) => send((sample, seeds) => withField(schema, sample, field.path, value, seeds));
        for (const value of odd.filter(
          (candidate) => !Check(field.schema as object, candidate) && (candidate !== null || field.required),
        )) {
          refuses(
            t,
            await put(value),
            400,
            new RegExp(`^${escaped(name)}(?:\\[\\d+\\]|\\.[^ ]+)* (?:must |is required)`),
            `${JSON.stringify(value)} is of a wrong type`,
          );
        }
        const left = await send((sample, seeds) => {
          const whole = withField(
            schema,
            sample,
            field.path,
            sampleOf(field.schema, field.path.at(-1) ?? '', seeds),
            seeds,
          );
          return withoutField(whole, field.path);
        });
        const needed = field.required || left.json.error?.startsWith(`${name} is required, unless `);
        if (needed) refuses(t, left, 400, new RegExp(`^${escaped(name)} is required(?:, unless .+)?$`), 'missing');
        else await accepts(t, 'may be missing', () => Promise.resolve(left));
        if (!field.required && !Check(field.schema as object, null)) {
          const nulled = await put(null);
          t.same([nulled.status, nulled.json.error], [left.status, left.json.error], 'null means missing');
        }

        t.ok(isBounded(field.schema) || declared !== undefined, 'has a bound, in its schema or in this file');
        for (const { good, bad } of [boundsOf(field), declared ?? { good: [], bad: [] }]) {
          for (const value of good) await accepts(t, `within its bound: ${shortened(value)}`, () => put(value));
          for (const [value, message] of bad)
            refuses(
              t,
              await put(value),
              400,
              typeof message === 'string' ? messagePattern(message) : message,
              shortened(value),
            );
        }
      });
    }

    await t.test('the body as a whole', async (t) => {
      const notJson: readonly (readonly [make: (good: string) => string, error: RegExp])[] = [
        [() => '', /^The body is empty; it must be a JSON object$/],
        [() => '{', /^The body is not valid JSON; it begins with "/],
        [(good) => `${good}}`, /^The body is not valid JSON; it begins with "/],
        [(good) => `\ufeff${good}`, /^The body is not valid JSON; it begins with "/],
        [() => "{'userId':'ann'}", /^The body is not valid JSON; it begins with "/],
        [(good) => `{"x":NaN,${good.slice(1)}`, /^The body is not valid JSON; it begins with "/],
        [() => 'userId=ann&body=Hi', /^The body is not valid JSON; it begins with "/],
        [() => `{"x":${'['.repeat(100_000)}`, /more than 64 levels deep$/],
        [
          (good) => `{"x":${nested(64)},${good.slice(1)}`,
          /^The body must not nest arrays and objects more than 64 levels deep$/,
        ],
        [
          (good) => `{"x":${nested(6_000)},${good.slice(1)}`,
          /^The body must not nest arrays and objects more than 64 levels deep$/,
        ],
        [() => 'null', /^The body must be a JSON object(?:, not .+)?$/],
        [() => '[]', /^The body must be a JSON object(?:, not .+)?$/],
        [(good) => `[${good}]`, /^The body must be a JSON object(?:, not .+)?$/],
        [() => '"text"', /^The body must be a JSON object(?:, not .+)?$/],
        [() => '7', /^The body must be a JSON object(?:, not .+)?$/],
        [() => 'true', /^The body must be a JSON object(?:, not .+)?$/],
      ];
      for (const [make, error] of notJson) refuses(t, await sendText(make), 400, error, shortened(make('{…}')));
      refuses(
        t,
        await sendText((good) => Buffer.from(`{"x":"\xff",${good.slice(1)}`, 'latin1')),
        400,
        /^The body must be UTF-8$/,
        'a byte that is no UTF-8',
      );
      for (const type of [
        '',
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'application/jsonp',
        'text/json',
        'json',
        '*/*',
        'application/json+x',
        'text/plain, application/json',
      ]) {
        const wanted =
          route.body === undefined
            ? /^Content-Type must be .+ or application\/json, (?:not .+|but is missing)$/
            : /^Content-Type must be application\/json, (?:not .+|but is missing)$/;
        refuses(
          t,
          await sendText((good) => good, { 'Content-Type': type }),
          400,
          wanted,
          `Content-Type ${type === '' ? 'empty' : type}`,
        );
      }
      for (const type of ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON;charset=UTF-8']) {
        await accepts(t, `Content-Type ${type}`, () => sendText((good) => good, { 'Content-Type': type }));
      }
      await accepts(t, 'unknown fields are ignored', () =>
        send((sample) => ({ ...(sample as object), unknown: { deep: [1] }, environmentId: 'x', createdAt: 'x' })),
      );
      await accepts(t, 'up to 64 levels, the body being one', () =>
        sendText((good) => extended(good, `"x":${nested(63)}`)),
      );
      await accepts(t, '__proto__ and constructor are dropped', () =>
        sendText((good) => extended(good, '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}')),
      );
      t.equal(({} as { polluted?: number }).polluted, undefined);
      const required = schema.required?.[0];
      if (required === undefined) return;
      refuses(
        t,
        await sendText((good) => `{"__proto__":${good},"constructor":${good}}`),
        400,
        new RegExp(`^${escaped(required)} is required$`),
        'fields of __proto__ are no fields',
      );
    });

    if (route.body === undefined) return;
    await t.test(`the body has at most ${MAX_JSON_BODY_BYTES} bytes | 413`, async (t) => {
      const padded =
        (size: number) =>
        (good: string): string =>
          good + ' '.repeat(size - Buffer.byteLength(good));
      await accepts(t, 'at the bound', () => sendText(padded(MAX_JSON_BODY_BYTES)));
      const message = /^The body must be at most 262144 bytes(?:, not .+)?$/;
      refuses(t, await sendText(padded(MAX_JSON_BODY_BYTES + 1)), 413, message, 'a byte more');
      refuses(t, await sendText(() => text(3_000_000)), 413, message, 'far more, and no JSON');
      pace(route, service);
      refuses(
        t,
        await sendChunked({ ...callOf(route, seeds), headers: credentials }, padded(MAX_JSON_BODY_BYTES + 1)('{}')),
        413,
        message,
        'without Content-Length',
      );
    });
  });
}

/** A message, and what it says was sent. */
const messagePattern = (message: string): RegExp => new RegExp(`^${escaped(message)}(?:, not .+| such as ".+")?$`);

/** An object's text with more fields before its own. */
const extended = (good: string, fields: string): string => `{${fields},${good.slice(1)}`.replace(/,\}$/, '}');

t.test('metadata never reach a prototype', async (t) => {
  for (const operationId of ['threads.create', 'comments.create', 'comments.update', 'users.put']) {
    const route = apiRoutes.find((candidate) => candidate.operationId === operationId);
    if (route === undefined) throw new Error(`no route ${operationId}`);
    const { path, method, body } = callOf(route, await seedFor(route, tenant));
    const poisoned = JSON.stringify(body).replace(
      /\}$/,
      `${body === undefined || JSON.stringify(body) === '{}' ? '' : ','}"metadata":{"__proto__":{"a":1},"constructor":"x","kept":"yes","toString":"too"}}`,
    );
    const { status, json } = await tenant.request<Record<string, { metadata: object }>>(method, path, {
      body: poisoned,
    });
    t.ok(successes(route).includes(status), operationId);
    t.strictSame(Object.values(json)[0]?.metadata, { kept: 'yes', toString: 'too' }, operationId);
  }
});

t.test('numbers that JSON can say and no number can hold are refused', async (t) => {
  const seeds = await seedFor({ path: '' }, tenant);
  const post = (fields: string) =>
    tenant.request<Failure>('POST', '/rooms/room/threads', {
      body: `{"userId":${JSON.stringify(seeds['userId'])},"body":"Hi",${fields}}`,
    });
  refuses(
    t,
    await post('"metadata":{"a":1e999}'),
    400,
    /^metadata\.a must be a string, a number or a boolean(?:, not .+)?$/,
    'metadata',
  );
  for (const field of ['elementOffsetX', 'elementOffsetY', 'scrollX', 'scrollY']) {
    refuses(
      t,
      await post(`"position":{"x":0,"y":0,"${field}":-1e999}`),
      400,
      new RegExp(`^position\\.${field} must be a number, not -Infinity$`),
      field,
    );
    t.equal((await post(`"position":{"x":0,"y":0,"${field}":-1e300}`)).status, 201);
  }
});

t.test('of a field that is there twice the last counts', async (t) => {
  const seeds = await seedFor({ path: '' }, tenant);
  const { status, json } = await tenant.request('POST', `/threads/${seeds['threadId']}/comments`, {
    body: `{"userId":${JSON.stringify(seeds['userId'])},"body":7,"body":"Second"}`,
  });
  t.equal(status, 201);
  t.match(json, { comment: { body: 'Second' } });
});

t.test('routes that take no body ignore one, and the connection stays good', async (t) => {
  for (const route of apiRoutes.filter(
    ({ body, payload, upload, method }) =>
      body === undefined && payload === undefined && upload !== true && method !== 'GET',
  )) {
    for (const body of ['{}', '{', 'x'.repeat(100_000), 'x'.repeat(300_000)]) {
      const { method, path } = callOf(route, await seedFor(route, tenant));
      const answer = await tenant.request(method, path, {
        body,
        key: null,
        headers: await credentialsFor(route, tenant),
      });
      t.ok(successes(route).includes(answer.status), `${titleOf(route)} with ${body.length} bytes`, {
        found: answer.text,
      });
    }
  }
});

t.test('limits are configurable per environment', async (t) => {
  const strict = await service.tenant('strict', {
    limits: {
      bodyLength: 5,
      mentions: 1,
      metadataKeys: 1,
      metadataKeyLength: 2,
      metadataValueLength: 3,
      selectorLength: 4,
      idLength: 8,
      roomIdLength: 8,
      commentsPerThread: 2,
    },
  });
  await strict.request('PUT', '/users/ann', { body: {} });
  const post = (fields: object, room = 'room') =>
    strict.request<Failure & { thread: { id: string } }>('POST', `/rooms/${room}/threads`, {
      body: { userId: 'ann', body: 'Hello', ...fields },
    });
  for (const [fields, message] of [
    [{ body: 'Hello!' }, 'body must be 1 to 5 characters'],
    [{ mentions: ['a', 'b'] }, 'mentions must hold at most 1 user ids'],
    [{ metadata: { a: 1, b: 1 } }, 'metadata must hold at most 1 keys'],
    [{ metadata: { abc: 1 } }, 'Keys of metadata must be 1 to 2 characters'],
    [{ metadata: { a: 'four' } }, 'metadata.a must be at most 3 characters'],
    [{ position: { x: 0, y: 0, path: 'abcde' } }, 'position.path must be at most 4 characters'],
    [{ userId: 'nine char' }, 'userId must be 1 to 8 characters'],
  ] as const) {
    refuses(t, await post(fields), 400, messagePattern(message), message);
  }
  refuses(t, await post({}, 'nine-char'), 400, /^roomId must be 1 to 8 characters(?:, not .+)?$/, 'roomId');
  const { json } = await post({ mentions: ['a'], metadata: { ab: 'abc' }, position: { x: 0, y: 0, path: 'abcd' } });
  const comment = () =>
    strict.request<Failure>('POST', `/threads/${json.thread.id}/comments`, { body: { userId: 'ann', body: 'Hello' } });
  t.equal((await comment()).status, 201);
  refuses(t, await comment(), 400, /^A thread holds at most 2 comments$/, 'comments per thread');
});

function describe({ type, anyOf, items }: SchemaNode): string {
  if (anyOf !== undefined) return anyOf.map(({ const: value, type: name }) => String(value ?? name)).join(', ');
  return type === 'array' ? `array of ${items?.type}` : String(type);
}

function shortened(value: unknown): string {
  const shown = JSON.stringify(value);
  return shown.length > 60 ? `${shown.slice(0, 60)}… of ${shown.length}` : shown;
}

/**
 * Holds a refusal: its status, the exact shape of its body, a message that names field and bound, its code. One
 * assertion, since there are thousands.
 */
function refuses(
  t: Test,
  { status: found, json, headers, text: whole }: TestResponse<Failure>,
  status: number,
  message: RegExp,
  what: string,
): void {
  const code = headers.get('x-error-code') ?? '';
  const faults = [
    found === status ? '' : `${found} ${whole.slice(0, 200)}`,
    Object.keys(json ?? {}).join() === 'error' ? '' : 'not exactly {error}',
    message.test(json?.error) ? '' : `says ${json?.error}`,
    json?.error?.length < 300 ? '' : 'in too many words',
    /^(?:invalid_(?:request|json|content_type)|payload_too_large|unknown_attachment)$/.test(code)
      ? ''
      : `the code ${code}`,
  ];
  t.strictSame(
    faults.filter((fault) => fault !== ''),
    [],
    `${what} | ${status} ${message.source}`,
  );
}

async function sendChunked(
  { method, path, headers: given = {} }: RouteCall,
  body: string,
): Promise<TestResponse<Failure>> {
  const lines = Object.entries(given)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const { port } = new URL(service.urls[0] ?? '');
  const connection = await RawConnection.open(Number(port));
  const half = body.length >> 1;
  const chunks = [body.slice(0, half), body.slice(half)]
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    .join('');
  await connection.send(
    `${method} /api/v1${path} HTTP/1.1\r\nHost: localhost\r\n${lines}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
  );
  const { status, headers, body: answered } = await connection.answer();
  connection.destroy();
  return { status, headers: new Headers({ ...headers }), text: answered, json: JSON.parse(answered) as Failure };
}
