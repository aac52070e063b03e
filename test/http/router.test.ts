import t from 'tap';
import { Router } from '../../src/http/core/router.ts';

const router = new Router<string>();
for (const [method, path] of [
  ['GET', '/'],
  ['GET', '/rooms'],
  ['GET', '/rooms/:roomId'],
  ['GET', '/rooms/:roomId/threads'],
  ['POST', '/rooms/:roomId/threads'],
  ['GET', '/rooms/special'],
] as const) {
  router.add(method, path, `${method} ${path}`);
}

t.test('routes are found by method and path', (t) => {
  const cases: [method: string, path: string, target: string | null, params?: Record<string, string>][] = [
    ['GET', '/', 'GET /', {}],
    ['GET', '', 'GET /', {}],
    ['GET', '/rooms', 'GET /rooms', {}],
    ['GET', '/rooms/', 'GET /rooms', {}],
    ['HEAD', '/rooms', 'GET /rooms', {}],
    ['GET', '/rooms/a', 'GET /rooms/:roomId', { roomId: 'a' }],
    ['GET', '/rooms/a%2Fb/', 'GET /rooms/:roomId', { roomId: 'a%2Fb' }],
    ['POST', '/rooms/a/threads', 'POST /rooms/:roomId/threads', { roomId: 'a' }],
    ['GET', '/rooms/special', 'GET /rooms/special', {}],
    ['get', '/rooms', null],
    ['POST', '/rooms', null],
    ['DELETE', '/rooms/a/threads', null],
    ['OPTIONS', '/rooms', null],
    ['GET', '//', null],
    ['GET', '/rooms//', null],
    ['GET', '//rooms', null],
    ['GET', '/rooms//threads', null],
    ['GET', '/Rooms', null],
    ['GET', '/rooms/a/threads/b', null],
    ['GET', '/constructor', null],
    ['GET', '/__proto__', null],
  ];
  for (const [method, path, target, params] of cases) {
    const found = router.find(method, path);
    t.strictSame(
      found && { target: found.target, params: found.params },
      target === null ? null : { target, params },
      `${method} ${path}`,
    );
  }
  t.end();
});

t.test('two routes with the same method and path are an error', (t) => {
  t.throws(() => router.add('GET', '/rooms/:other', 'again'), { message: 'two routes are GET /rooms/:other' });
  t.end();
});
