import t from 'tap';
import { options } from '../../src/config/option.ts';

t.test('every option has a description and a default within its bounds', async (t) => {
  t.ok(options.size > 20);
  for (const { path, description, fallback, check } of options.values()) {
    t.match(description, /\w.*\.$/, `${path} is described in a sentence`);
    t.ok(check(fallback), `${path} accepts its default`);
  }
});

t.test('no two options share a variable', async (t) => {
  const names = [...options.values()].map(({ variable }) => variable);
  t.equal(new Set(names).size, names.length);
  for (const name of names) t.match(name, /^COLLAB_[A-Z_]+$/);
});

t.test('the bounds themselves are accepted and one past them is not', async (t) => {
  const port = options.get('port');
  for (const [value, accepted] of [
    [0, true],
    [65_535, true],
    [-1, false],
    [65_536, false],
  ] as const) {
    t.equal(port?.check(value), accepted, `${value}`);
    t.equal(port?.parse(String(value)) !== undefined, accepted, `"${value}"`);
  }
});
