import t from 'tap';
import { breach, circles } from './helpers/layers.ts';
import { importsOf, projectFiles, readSource } from './helpers/sources.ts';

t.test('imports point down only, and each foreign package has one home', (t) => {
  const files = projectFiles().filter((path) => /^(?:src|bin|plugins|tools)\/.*\.ts$/.test(path));
  const edges = files.flatMap((file) => importsOf(file, readSource(file)).map((found) => ({ file, found })));
  t.ok(edges.length > files.length, 'imports were found at all');
  t.strictSame(
    edges.map(({ file, found }) => breach(file, found)).filter((line) => line !== null),
    [],
  );
  t.end();
});

t.test('no files import each other in a circle, types included', (t) => {
  const files = projectFiles().filter((path) => /^(?:src|bin|plugins|tools)\/.*\.ts$/.test(path));
  t.strictSame(
    circles(new Map(files.map((file) => [file, importsOf(file, readSource(file)).map(({ target }) => target)]))),
    [],
  );
  t.end();
});

t.test('a circle is noticed', (t) => {
  const imports = { a: ['b'], b: ['c', 'd'], c: ['a'], d: ['e'], e: [], f: ['f2'], f2: ['f'] };
  t.strictSame(circles(new Map(Object.entries(imports))), [
    ['a', 'b', 'c'],
    ['f', 'f2'],
  ]);
  t.end();
});

t.test('a breach is noticed', (t) => {
  const cases: [file: string, target: string, allowed: boolean][] = [
    ['src/lib/clock.ts', 'node:fs', true],
    ['src/lib/clock.ts', 'src/model/errors.ts', false],
    ['src/model/room.ts', 'src/lib/ids.ts', true],
    ['src/model/room.ts', 'src/domain/rooms/rooms.ts', false],
    ['src/domain/rooms/rooms.ts', 'src/ports/store.ts', true],
    ['src/domain/rooms/rooms.ts', 'src/adapters/lmdb/store.ts', false],
    ['src/domain/rooms/rooms.ts', 'jose', false],
    ['src/domain/access/tokens.ts', 'jose', true],
    ['src/http/api/routes/rooms.ts', 'src/domain/rooms/rooms.ts', true],
    ['src/http/api/routes/rooms.ts', 'src/realtime/feed/hub.ts', false],
    ['src/http/api/routes/rooms.ts', 'src/plugins/host.ts', true],
    ['src/workers/background/sweep.ts', 'uWebSockets.js', false],
    ['src/realtime/server.ts', 'uWebSockets.js', false],
    ['src/net/uws/server.ts', 'uWebSockets.js', true],
    ['src/net/node/server.ts', 'ws', true],
    ['src/net/listen.ts', 'ws', false],
    ['src/workers/web-worker.ts', 'src/adapters/lmdb/store.ts', false],
    ['src/app.ts', 'src/adapters/lmdb/store.ts', true],
    ['src/cli/commands/server/init.ts', 'src/adapters/lmdb/store.ts', false],
    ['src/cli/commands/server/init.ts', 'src/app.ts', true],
    ['src/widget/element.ts', 'src/model/thread.ts', true],
    ['src/widget/element.ts', 'src/lib/ids.ts', false],
    ['src/demo/page/main.ts', 'src/model/thread.ts', true],
    ['src/demo/page/main.ts', 'src/domain/rooms/rooms.ts', false],
    ['src/demo/demo.ts', 'src/domain/rooms/rooms.ts', true],
    ['plugins/mail/index.ts', 'plugins/mail/send.ts', true],
    ['plugins/mail/index.ts', 'src/plugins/api.ts', true],
    ['plugins/mail/index.ts', 'plugins/shared/link.ts', true],
    ['plugins/mail/index.ts', 'plugins/chat/message.ts', false],
    ['plugins/mail/index.ts', 'src/plugins/host.ts', false],
    ['plugins/mail/index.ts', 'src/domain/rooms/rooms.ts', false],
    ['src/lib/clock.ts', 'test/helpers/sources.ts', false],
    ['bin/collab.ts', 'src/cli/main.ts', true],
    ['bin/worker.ts', 'src/app.ts', true],
    ['bin/collab.ts', 'src/domain/rooms/rooms.ts', false],
  ];
  for (const [file, target, allowed] of cases)
    t.equal(breach(file, { target, typeOnly: true }) === null, allowed, `${file} -> ${target}`);
  t.type(
    breach('src/widget/element.ts', { target: 'src/model/thread.ts', typeOnly: false }),
    'string',
    'browsers get types alone',
  );
  t.end();
});

t.test('every form of import is read', (t) => {
  const text = [
    "import one from 'one';",
    "import './two.ts';",
    'import {',
    '  three,',
    "} from '../lib/three.ts';",
    "import type { Four } from './four.ts';",
    "export { five } from './five.ts';",
    "export * from './six.ts';",
    "const seven = await import('./seven.ts');",
    "type Eight = import('./eight.ts').Eight;",
    "export const nine = 'nine';",
    "// import ten from 'ten';",
  ].join('\n');
  t.same(importsOf('src/model/x.ts', text), [
    { target: 'one', typeOnly: false },
    { target: 'src/model/two.ts', typeOnly: false },
    { target: 'src/lib/three.ts', typeOnly: false },
    { target: 'src/model/four.ts', typeOnly: true },
    { target: 'src/model/five.ts', typeOnly: false },
    { target: 'src/model/six.ts', typeOnly: false },
    { target: 'src/model/seven.ts', typeOnly: false },
    { target: 'src/model/eight.ts', typeOnly: false },
  ]);
  t.end();
});
