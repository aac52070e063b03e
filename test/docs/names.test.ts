import t from 'tap';
import { groups, options } from '../../src/config/option.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { type ErrorCode, errorKinds } from '../../src/model/errors.ts';
import { defaultLimits } from '../../src/model/environments/limits.ts';
import { defaultQuotas } from '../../src/model/environments/quotas.ts';
import { nodeSupport } from '../../src/cli/node-version.ts';
import { type DocumentCode, documents, inlineCode } from '../helpers/code-blocks.ts';
import { projectFiles, readSource } from '../helpers/sources.ts';

const inline = documents.flatMap((path) => inlineCode(path));
const lines = documents.flatMap((path) =>
  readSource(path)
    .split('\n')
    .map((text, index) => ({ at: `${path}:${index + 1}`, text })),
);

/** What each pattern finds in the documents, with its place. */
function found(texts: readonly DocumentCode[], pattern: RegExp): { readonly at: string; readonly groups: string[] }[] {
  return texts.flatMap(({ at, text }) =>
    [...text.matchAll(pattern)].map(([, ...rest]) => ({ at, groups: rest.map((each) => each ?? '') })),
  );
}

t.test('every option that a document names exists', (t) => {
  const tops = [...groups.keys()].filter((name) => name !== '').join('|');
  const named = found(inline, new RegExp(`^((?:${tops})\\.[A-Za-z.]+)$`, 'g'));
  t.ok(named.length > 20);
  t.strictSame(
    named
      .filter(({ groups: [path = ''] }) => !options.has(path) && !groups.has(path))
      .map(({ at, groups: [path] }) => `${at}: ${path}`),
    [],
  );
  t.end();
});

t.test('every variable that a document names exists', (t) => {
  // COLLAB_SERVICE_HOST stands for those that Kubernetes sets; the others are read by the examples.
  const others = [
    'COLLAB_DIR',
    'COLLAB_SERVICE_HOST',
    'COLLAB_URL',
    'COLLAB_SECRET_KEY',
    'COLLAB_PUBLISHABLE_KEY',
    'COLLAB_SIGNING_SECRET',
    'COLLAB_SIGNING_KID',
  ];
  const known = new Set([...options.values()].map(({ variable }) => variable).concat(others));
  const named = found(lines, /\b(COLLAB_[A-Z_]*[A-Z])\b/g);
  t.ok(named.length > 30);
  t.strictSame(
    named.filter(({ groups: [name = ''] }) => !known.has(name)).map(({ at, groups: [name] }) => `${at}: ${name}`),
    [],
  );
  t.end();
});

t.test('every route that a document names exists, and its parameters have their names', (t) => {
  const others = ['/files/:environmentId/:fileId', '/livez', '/readyz', '/healthz', '/metrics', '/collab-token'];
  const paths = new Map<string, string[]>();
  for (const { method, path } of apiRoutes) paths.set(method, [...(paths.get(method) ?? []), path]);
  const named = found(
    inline,
    /^(GET|HEAD|POST|PUT|PATCH|DELETE) (?:http:\/\/127\.0\.0\.1:\d+)?(?:\/api\/v1)?(\/[^\s?…]*)(?:\?\S*)?$/g,
  );
  t.ok(named.length > 50);
  const exists = (method: string, path: string): boolean => {
    const all = [...(paths.get(method === 'HEAD' ? 'GET' : method) ?? []), ...others];
    return (
      path.startsWith('/plugins/') ||
      all.some(
        (each) =>
          each === path || (!path.includes(':') && new RegExp(`^${each.replaceAll(/:\w+/g, '[^/]+')}$`).test(path)),
      )
    );
  };
  t.strictSame(
    named
      .filter(({ groups: [method = '', path = ''] }) => !exists(method, path))
      .map(({ at, groups: [method, path] }) => `${at}: ${method} ${path}`),
    [],
  );
  t.end();
});

t.test('every error code that a document names with its status has that status', (t) => {
  const named = found(lines, /\b([45]\d\d) `([a-z]+_[a-z_]+)`/g);
  t.ok(named.length > 5);
  const wrong = named.filter(
    ({ groups: [status, code] }) =>
      !Object.hasOwn(errorKinds, code ?? '') || String(errorKinds[code as ErrorCode].status) !== status,
  );
  t.strictSame(
    wrong.map(({ at, groups: [status, code] }) => `${at}: ${status} ${code}`),
    [],
  );
  t.end();
});

t.test('every file that a document names exists', (t) => {
  const files = projectFiles();
  const known = new Set(
    files.flatMap((path) => path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))),
  );
  const named = found(inline, /^((?:src|test|tools|bench|plugins|examples|docs|bin|\.ci)\/[\w./-]+)$/g);
  t.ok(named.length > 20);
  t.strictSame(
    named
      .filter(({ groups: [path = ''] }) => !known.has(path.replace(/\/$/, '')) && !path.endsWith('node_modules'))
      .map(({ at, groups: [path] }) => `${at}: ${path}`),
    [],
  );
  t.end();
});

t.test('the API lists all limits and quotas of an environment with their defaults', (t) => {
  const api = readSource('docs/api.md');
  const paragraph = api.split('\n').find((line) => line.startsWith('Each environment can override these limits')) ?? '';
  const listed = [...paragraph.matchAll(/`(\w+)` \((?:[^)\d]*, )?([\d ]+)\)/g)].map(
    ([, name = '', value = '']) => [name, numberOf(value)] as const,
  );
  t.strictSame(Object.fromEntries(listed), { ...defaultLimits });
  const rows = [...api.matchAll(/^\| `(\w+)` \| ([\d ]+) \| [^|]+ \| 4\d\d `\w+` \|$/gm)].map(
    ([, name = '', value = '']) => [name, numberOf(value)] as const,
  );
  t.strictSame(Object.fromEntries(rows), { ...defaultQuotas });
  t.end();
});

t.test('the documents and package.json name the versions of Node that are tested', (t) => {
  const { engines } = JSON.parse(readSource('package.json')) as { engines: { node: string } };
  const majors = [...engines.node.matchAll(/\^(\d+)\.(\d+)/g)].map(([, major = '', minor = '']) => ({
    major,
    oldest: `${major}.${minor}`,
  }));
  const tested = Array.from({ length: 40 }, (_, major) => major).filter(
    (major) => nodeSupport(`${major}.99.0`) === 'tested',
  );
  t.strictSame(
    majors.map(({ major }) => Number(major)),
    tested,
  );
  for (const { oldest } of majors) {
    const [major = 0, minor = 0] = oldest.split('.').map(Number);
    t.equal(nodeSupport(`${oldest}.0`), 'tested', oldest);
    if (minor > 0) t.not(nodeSupport(`${major}.${minor - 1}.0`), 'tested', `before ${oldest}`);
  }
  const platforms = readSource('docs/deploy/README.md');
  for (const { oldest, major } of majors)
    t.match(platforms, oldest.endsWith('.0') ? new RegExp(`\\b${major}\\b`) : `${oldest} or later`, oldest);
  t.end();
});

function numberOf(text: string): number {
  return Number(text.replaceAll(' ', ''));
}
