import t from 'tap';
import { checkBody, checkRoomId, checkMentions, checkMetadata, checkPosition } from '../../src/domain/input/bounds.ts';
import { InputSchema, validate } from '../../src/domain/input/validate.ts';
import { CommentCreateSchema } from '../../src/model/comment.ts';
import { defaultLimits } from '../../src/model/environments/limits.ts';
import { ThreadCreateSchema, ThreadPatchSchema } from '../../src/model/thread.ts';
import { UserPutSchema } from '../../src/model/user.ts';

const comment = new InputSchema(CommentCreateSchema);
const thread = new InputSchema(ThreadCreateSchema);
const patch = new InputSchema(ThreadPatchSchema);
const user = new InputSchema(UserPutSchema);
const good = { userId: 'ann', body: 'hi' };

await t.test('an error names the field and the bound', async (t) => {
  const cases: [InputSchema<never>, unknown, string][] = [
    [comment, {}, 'userId is required'],
    [comment, { userId: 'ann' }, 'body is required'],
    [comment, { ...good, userId: 7 }, 'userId must be a string'],
    [comment, { ...good, body: null }, 'body must be a string'],
    [comment, { ...good, mentions: 'bob' }, 'mentions must be an array'],
    [comment, { ...good, mentions: ['bob', 2] }, 'mentions[1] must be a string'],
    [comment, { ...good, id: 'short' }, 'id must match ^[A-Za-z0-9_-]{8,64}$'],
    [comment, { ...good, metadata: [] }, 'metadata must be an object'],
    [comment, { ...good, metadata: { a: null } }, 'metadata.a must be a string, a number or a boolean'],
    [thread, { ...good, position: 'top' }, 'position must be an object'],
    [thread, { ...good, position: { x: 0 } }, 'position.y is required'],
    [thread, { ...good, position: { x: 1.01, y: 0 } }, 'position.x must be between 0 and 1'],
    [thread, { ...good, position: { x: 0, y: -0.1 } }, 'position.y must be between 0 and 1'],
    [thread, { ...good, position: { x: '0.5', y: 0 } }, 'position.x must be a number'],
    [thread, { ...good, position: { x: Infinity, y: 0 } }, 'position.x must be a number'],
    [thread, { ...good, position: { x: 0, y: 0, scrollX: Infinity } }, 'position.scrollX must be a number'],
    [thread, { ...good, position: { x: 0, y: 0, selector: 3 } }, 'position.selector must be a string'],
    [patch, { resolved: 'true' }, 'resolved must be a boolean'],
    [user, { kind: 'robot' }, 'kind must be one of user, bot'],
    [user, { name: 'a\udc00' }, 'name must be well-formed Unicode, without lone surrogates'],
    [
      thread,
      { ...good, position: { x: 0, y: 0, path: '\ud800' } },
      'position.path must be well-formed Unicode, without lone surrogates',
    ],
    [user, { name: '' }, 'name must be 1 to 256 characters'],
    [user, { avatarUrl: 'x'.repeat(2049) }, 'avatarUrl must be at most 2048 characters'],
  ] as [InputSchema<never>, unknown, string][];
  for (const [schema, value, message] of cases)
    t.throws(() => validate(schema, value), { code: 'invalid_request', message }, message);
});

await t.test('a body that is not an object is refused', async (t) => {
  for (const value of [null, [], 'text', 3, true, undefined]) {
    t.throws(() => validate(comment, value), { code: 'invalid_json', message: 'The body must be a JSON object' });
  }
  t.throws(() => validate(comment, null, 'data'), { message: 'data must be an object' });
  t.throws(() => validate(comment, { userId: 1, body: 'x' }, 'data'), { message: 'data.userId must be a string' });
});

await t.test('bounds are inclusive and unknown fields pass', async (t) => {
  t.doesNotThrow(() => validate(thread, { ...good, position: { x: 0, y: 1 }, surprise: '\ud800' }));
  t.doesNotThrow(() => validate(comment, { ...good, metadata: { a: 'x', b: 1, c: false } }));
});

await t.test('keys that reach a prototype are dropped from metadata', async (t) => {
  const value: unknown = JSON.parse(
    '{"userId":"ann","body":"x","metadata":{"__proto__":{"evil":1},"constructor":"x","ok":1},"__proto__":{"body":1}}',
  );
  const { metadata = {} } = validate(comment, value);
  t.same(Object.entries(metadata), [['ok', 1]]);
});

await t.test('a fault is named wherever it is in a long map', async (t) => {
  const entries = Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i === 4_321 ? [] : 1]);
  t.throws(() => validate(comment, { ...good, metadata: Object.fromEntries(entries) }), {
    message: 'metadata.k4321 must be a string, a number or a boolean, not an array',
  });
});

await t.test('a fault at the end of the longest map that a body has room for is found in little time', async (t) => {
  const body = (last: unknown) => ({
    ...good,
    metadata: Object.fromEntries(Array.from({ length: 24_000 }, (_, i) => [`k${i}`, i === 23_999 ? last : 1])),
  });
  const timeOf = (validated: () => void): number => {
    const times = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage();
      validated();
      const { user, system } = process.cpuUsage(before);
      return user + system;
    });
    return Math.min(...times);
  };
  const [right, wrong] = [body(1), body([])];
  const fault = /^metadata\.k23999 must be a string, a number or a boolean/;
  const valid = timeOf(() => validate(comment, right));
  const invalid = timeOf(() => t.throws(() => validate(comment, wrong), { message: fault }));
  t.ok(invalid < 5 * valid, `${invalid} and ${valid} µs`);
});

await t.test('null means that an optional field is absent, also inside of another', async (t) => {
  t.same(validate(thread, { ...good, position: null, mentions: null, metadata: null }), good);
  t.same(validate(thread, { ...good, position: { x: 0, y: 1, selector: null } }), {
    ...good,
    position: { x: 0, y: 1 },
  });
  for (const [value, message] of [
    [{ ...good, userId: null }, 'userId must be a string'],
    [{ ...good, position: { x: null, y: 1 } }, 'position.x must be a number'],
    [{ ...good, mentions: [null] }, 'mentions[0] must be a string'],
    [{ ...good, metadata: { key: null } }, 'metadata.key must be a string, a number or a boolean'],
  ] as const)
    t.throws(() => validate(thread, value), { code: 'invalid_request', message });
});

await t.test('a long key in a message is cut', async (t) => {
  t.throws(() => validate(comment, { ...good, metadata: { ['k'.repeat(5000)]: [] } }), {
    message: /^metadata\.k{60}… must be/,
  });
});

await t.test(
  'texts, ids, mentions, metadata and positions are checked against the limits of the environment',
  async (t) => {
    const limits = {
      ...defaultLimits,
      bodyLength: 3,
      mentions: 2,
      metadataKeys: 1,
      metadataValueLength: 2,
      metadataKeyLength: 2,
      selectorLength: 2,
      idLength: 4,
      roomIdLength: 4,
    };
    t.doesNotThrow(() => checkBody('abc', limits));
    for (const body of ['', 'abcd'])
      t.throws(() => checkBody(body, limits), { message: 'body must be 1 to 3 characters' });
    t.throws(() => checkBody(' \n', limits), {
      message: 'body must be 1 to 3 characters, not only white space or characters that show nothing',
    });
    t.throws(() => checkRoomId('abcde', limits), { message: 'roomId must be 1 to 4 characters' });
    t.throws(() => checkRoomId('', limits), { message: 'roomId must be 1 to 4 characters' });
    for (const id of ['a\nb', '\u0000', 'a\ud800'])
      t.throws(() => checkRoomId(id, limits), { message: /^roomId must not contain/ });
    t.doesNotThrow(() => checkRoomId('ü/😀', limits));
    t.same(checkMentions(['b', 'a'], limits), ['b', 'a']);
    t.same(checkMentions(['b', 'a', 'b'], { ...limits, mentions: 3 }), ['b', 'a']);
    t.throws(() => checkMentions(['a', 'b', 'c'], limits), { message: 'mentions must hold at most 2 user ids' });
    t.throws(() => checkMentions(['a', ''], limits), { message: 'mentions[1] must be 1 to 4 characters' });
    t.throws(() => checkMetadata({ a: 1, b: 2 }, limits), { message: 'metadata must hold at most 1 keys' });
    t.throws(() => checkMetadata({ abc: 1 }, limits), { message: 'Keys of metadata must be 1 to 2 characters' });
    t.throws(() => checkMetadata({ a: 'xyz' }, limits), { message: 'metadata.a must be at most 2 characters' });
    t.throws(() => checkPosition({ x: 0, y: 0, selector: 'abc' }, limits), {
      message: 'position.selector must be at most 2 characters',
    });
    t.throws(() => checkPosition({ x: 0, y: 0, path: 'abc' }, limits), {
      message: 'position.path must be at most 2 characters',
    });
    t.equal(JSON.stringify(checkPosition({ y: 1, x: 0.5, ...{ surprise: 1 } }, limits)), '{"x":0.5,"y":1}');
  },
);
