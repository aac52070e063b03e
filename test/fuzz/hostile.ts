import type { Random } from './random.ts';

/** Stands for nesting that is too deep for `JSON.stringify`, until `jsonText` puts it in. */
const DEEP_MARK = '@nested 6 000 deep@';
const DEEP_TEXT = `${'['.repeat(6_000)}${']'.repeat(6_000)}`;

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
};

/** Texts that have broken parsers, stores, headers or renderers before. */
export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '\t\r\n',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'lone \udfff surrogate',
  '👍🏽',
  '👨‍👩‍👧‍👦',
  '\u202eright to left',
  '\u200b',
  'é'.repeat(200),
  'x'.repeat(129),
  'x'.repeat(513),
  'x'.repeat(2_049),
  'x'.repeat(10_001),
  '__proto__',
  'constructor',
  'toString',
  '..',
  '../../etc/passwd',
  '%',
  '%2e%2e%2f',
  'a/b',
  'a*',
  '*',
  '~',
  '<script>alert(1)</script>',
  "'; DROP TABLE comments; --",
  '${7*7}',
  'text/html\r\nX-Evil: 1',
  '9007199254740993',
  '-1',
  '1e309',
  'NaN',
  'null',
  'true',
  '2026-01-02T03:04:05.678Z',
  '2026-13-45T99:99:99Z',
  '+275760-09-13T00:00:00.001Z',
  '0000-00-00',
  'W/"x"',
  'bytes=0-,1-',
  'data:text/html,x',
  'javascript:alert(1)',
  'http://127.0.0.1/',
  'AAAA',
  '====',
];

const HOSTILE_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  0.5,
  1.5,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  2 ** 53,
  8.64e12 + 1,
  8.64e15 + 1,
  [],
  {},
  [[]],
  [null],
  { length: 1 },
  { toString: 'x' },
  nested(30),
  nested(100),
  DEEP_MARK,
  { deep: DEEP_MARK },
  { deep: { deep: DEEP_MARK } },
  Array.from({ length: 51 }, (_, index) => `user-${index}`),
  Array.from({ length: 2_000 }, () => 'same'),
  Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, index])),
  { ['k'.repeat(41)]: 'v' },
];

export const hostileText = (random: Random): string => random.pick(HOSTILE_TEXTS);

/** Any JSON value that its reader may not expect. */
export function hostileValue(random: Random): unknown {
  return random.chance(0.5) ? hostileText(random) : random.pick(HOSTILE_VALUES);
}

/** A copy of a JSON value in which one to three places have been replaced, removed or added. */
export function mutated(random: Random, value: unknown): unknown {
  let result: unknown = structuredClone(value);
  for (let times = 1 + random.below(3); times > 0; times--) result = mutatedOnce(random, result);
  return result;
}

function mutatedOnce(random: Random, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || random.chance(0.05)) return hostileValue(random);
  if (Array.isArray(value)) {
    const items: unknown[] = [...(value as unknown[])];
    const at = random.below(items.length + 1);
    if (at === items.length || random.chance(0.3)) items.push(hostileValue(random));
    else items[at] = mutatedOnce(random, items[at]);
    return items;
  }
  const fields = Object.entries(value);
  const kind = random.next();
  if (kind < 0.2 || fields.length === 0) return { ...value, [hostileText(random)]: hostileValue(random) };
  const [name, inner] = random.pick(fields);
  if (kind < 0.35) return Object.fromEntries(fields.filter(([other]) => other !== name));
  return { ...value, [name]: random.chance(0.6) ? mutatedOnce(random, inner) : hostileValue(random) };
}

/** The JSON text of a value of this generator. */
export function jsonText(value: unknown): string {
  return (JSON.stringify(value) ?? '').replaceAll(JSON.stringify(DEEP_MARK), DEEP_TEXT);
}

/** As `jsonText`, now and then damaged: cut, with a byte changed, a duplicate or forbidden key, or in odd UTF-8. */
export function jsonBytes(random: Random, value: unknown): Buffer {
  const bytes = Buffer.from(jsonText(value));
  const kind = random.next();
  if (kind < 0.9 || bytes.byteLength < 2) return bytes;
  if (kind < 0.92) return bytes.subarray(0, random.below(bytes.byteLength));
  if (kind < 0.95) {
    bytes[random.below(bytes.byteLength)] = random.below(256);
    return bytes;
  }
  if (kind < 0.97) return Buffer.concat([Buffer.from('{"__proto__":{"scope":"full"},"body":1,'), bytes.subarray(1)]);
  if (kind < 0.98) return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
  if (kind < 0.99) return Buffer.from('['.repeat(20_000));
  return Buffer.concat([bytes, Buffer.from([0xff, 0xc0, 0x80])]);
}
