import t from 'tap';
import { isUnfilteredFirstPage, parseListQuery } from '../../src/domain/lists/list-query.ts';
import { query } from './world.ts';

await t.test('without parameters, a list is complete and in its default order', async (t) => {
  t.same(query('comments'), {
    list: 'comments',
    limit: null,
    cursor: null,
    sort: 'createdAt',
    order: 'asc',
    filters: {},
  });
  for (const list of ['threads', 'rooms', 'users'] as const)
    t.match(query(list), { limit: null, sort: 'createdAt', order: 'desc' });
  t.ok(isUnfilteredFirstPage(query('threads', 'limit=5&sort=updatedAt&order=asc')));
  t.notOk(isUnfilteredFirstPage(query('threads', 'cursor=x')));
  t.notOk(isUnfilteredFirstPage(query('threads', 'resolved=false')));
});

await t.test('limit is 1 to 1000, more counts as 1000', async (t) => {
  t.equal(query('threads', 'limit=1').limit, 1);
  t.equal(query('threads', 'limit=1000').limit, 1000);
  t.equal(query('threads', 'limit=99999').limit, 1000);
  for (const limit of ['0', '-1', '1.5', 'ten', '', '1e2', '9'.repeat(40)]) {
    t.throws(
      () => parseListQuery(new URLSearchParams({ limit }), 'threads'),
      { code: 'invalid_request', message: /^limit must be an integer between 1 and 1000(?:, not .+)?$/ },
      limit,
    );
  }
});

await t.test('each list parses its filters and ignores others', async (t) => {
  t.same(
    query('threads', 'resolved=false&userId=ann&participantId=bob&mentions=cy&metadata.b=2&metadata.a=1&q=no&x=y')
      .filters,
    {
      resolved: false,
      userId: 'ann',
      participantId: 'bob',
      mentions: 'cy',
      metadata: [
        ['a', '1'],
        ['b', '2'],
      ],
    },
  );
  t.same(query('comments', 'userId=ann&mentions=bob&resolved=maybe').filters, { userId: 'ann', mentions: 'bob' });
  t.same(query('rooms', 'prefix=a/&updatedSince=2026-01-01').filters, {
    prefix: 'a/',
    updatedSince: '2026-01-01T00:00:00.000Z',
  });
  t.same(query('users', 'q=An&kind=bot&seenSince=2026-01-01T01:00:00%2B01:00').filters, {
    q: 'An',
    kind: 'bot',
    seenSince: '2026-01-01T00:00:00.000Z',
  });
});

await t.test('an invalid value of a known parameter is refused with its name', async (t) => {
  const cases: [Parameters<typeof query>[0], string, RegExp][] = [
    ['threads', 'sort=name', /^sort must be one of createdAt, updatedAt(?:, not .+)?$/],
    ['threads', 'order=up', /^order must be one of asc, desc(?:, not .+)?$/],
    ['threads', 'resolved=1', /^resolved must be one of true, false(?:, not .+)?$/],
    ['threads', 'userId=', /^userId must be 1 to 256 characters(?:, not .+)?$/],
    ['threads', 'createdSince=yesterday', /^createdSince must be an ISO 8601 time/],
    ['threads', 'createdSince=2026-02-30', /^createdSince must be an ISO 8601 time/],
    ['threads', 'createdSince=2026-13-01T00:00:00Z', /^createdSince must be an ISO 8601 time/],
    ['comments', 'updatedSince=2026-01-01T25:00:00Z', /^updatedSince must be an ISO 8601 time/],
    ['comments', 'updatedSince=1767225600000', /^updatedSince must be an ISO 8601 time/],
    ['users', 'kind=robot', /^kind must be one of user, bot(?:, not .+)?$/],
    ['users', 'seenSince=', /^seenSince must be an ISO 8601 time/],
  ];
  for (const [list, search, message] of cases)
    t.throws(() => query(list, search), { code: 'invalid_request', message }, search);
});
