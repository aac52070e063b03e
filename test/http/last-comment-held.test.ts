import t from 'tap';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { startService } from '../helpers/service.ts';

t.test('deleting the last comment of a thread ends its held edit once', async (t) => {
  const tenant = await (await startService(t, { filters: holdingFilters })).tenant('last');
  await tenant.request('PUT', '/users/ann', { body: {} });
  const { json } = await tenant.request<{ thread: { comments: { id: string }[] } }>('POST', '/rooms/r/threads', {
    body: { userId: 'ann', body: 'first' },
  });
  const path = `/comments/${json.thread.comments[0]?.id}`;
  await tenant.request('PATCH', path, { body: { body: HELD_TEXT } });
  await tenant.request('DELETE', path);
  const events = await tenant.request<{ items: { type: string }[] }>('GET', '/events');
  const types = events.json.items.map(({ type }) => type).filter((type) => type.startsWith('moderation.'));
  t.strictSame(types, ['moderation.held', 'moderation.rejected']);
});
