import { posix } from 'node:path';
import t from 'tap';
import { projectFiles, readSource } from './helpers/sources.ts';

const files = projectFiles();
const known = new Set([...files, ...files.flatMap((path) => parents(path))]);
const documents = files.filter((path) => path.endsWith('.md') && !path.startsWith('bench/peers/'));

t.test('every relative link of a document leads to a file, and to a heading of it', (t) => {
  t.ok(documents.length > 20);
  const broken = documents.flatMap((path) =>
    linksOf(readSource(path))
      .filter((link) => !leads(path, link))
      .map((link) => `${path}: ${link}`),
  );
  t.strictSame(broken, []);
  t.end();
});

t.test('the README lists every document', (t) => {
  const linked = linksOf(readSource('README.md')).map((link) => link.replace(/#.*$/, '').replace(/\/README\.md$/, ''));
  const top = documents.filter((path) => /^docs\/[^/]+\.md$/.test(path));
  t.strictSame(
    top.filter((path) => !linked.includes(path)),
    [],
  );
  t.end();
});

t.test('a broken link is noticed', (t) => {
  t.strictSame(linksOf('[a](b.md) ![c](d.webp) `[e](f)` [g](https://example.com)\n```\n[h](i)\n```\n'), [
    'b.md',
    'd.webp',
  ]);
  t.ok(leads('README.md', 'docs/api.md'));
  t.ok(leads('docs/widget.md', '../examples/README.md'));
  t.ok(leads('docs/widget.md', 'realtime.md#user-tokens'));
  t.notOk(leads('docs/widget.md', 'realtime.md#nothing'));
  t.notOk(leads('docs/widget.md', 'nothing.md'));
  t.end();
});

/** The folders that a file is in. */
function parents(path: string): string[] {
  const folder = posix.dirname(path);
  return folder === '.' ? [] : [folder, ...parents(folder)];
}

/** The targets of the links and pictures of a Markdown text that are no addresses, but not those in code. */
function linksOf(text: string): string[] {
  const prose = text.replaceAll(/^ *```[^]*?^ *```/gm, '').replaceAll(/`[^`\n]*`/g, '`');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** Whether a link in a document leads to something. */
function leads(from: string, link: string): boolean {
  const [target = '', anchor] = link.split('#');
  const path = target === '' ? from : posix.join(posix.dirname(from), target).replace(/\/$/, '');
  if (!known.has(path)) return false;
  return anchor === undefined || !path.endsWith('.md') || headingsOf(readSource(path)).includes(anchor);
}

/** The names that a Markdown viewer gives to the headings: lower case, without punctuation, with hyphens for spaces. */
function headingsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) => {
    const name = title
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return count === 0 ? name : `${name}-${count}`;
  });
}
