import t from 'tap';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { firefoxSkipReason, openFirefox } from '../helpers/firefox.ts';
import { recordEverything, uploadRecordings } from '../helpers/recordings.ts';
import { api } from '../helpers/widget-page.ts';

t.test('the widget in Firefox', { skip: firefoxSkipReason }, async (t) => {
  const cluster = await demoServer(t);
  await api(cluster, 'PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' });
  const page = await openFirefox(t);
  await page.open(`${cluster.url}/demo/page?user=ann`);
  const root = "document.querySelector('collab-comments')?.shadowRoot";
  const holds = (expression: string): Promise<void> =>
    until(async () => (await page.evaluate(`Boolean(${expression})`)) === 'true', 60_000);

  await t.test('a POSTed thread appears, opens, and is answered by typing', async (t) => {
    await holds(`${root}?.querySelector('.toolbar') && ${root}.querySelector('.connection') === null`);
    const { thread } = (await (
      await api(cluster, 'POST', '/rooms/demo/threads', {
        userId: 'ci-bot',
        body: 'From REST',
        position: { x: 0.5, y: 0.2 },
      })
    ).json()) as { thread: { id: string } };
    await holds(`${root}.querySelector('.pin[data-thread="${thread.id}"]')`);
    await page.evaluate(`${root}.querySelector('.pin').click()`);
    await holds(`${root}.activeElement?.matches('.popover textarea')`);
    t.match(await page.evaluate(`${root}.querySelector('.popover .body').textContent`), 'From REST');
    await page.type('Typed in Firefox\uE007');
    await holds(
      `[...${root}.querySelectorAll('.comment:not(.pending) .body')].some((body) => body.textContent.includes('Typed in Firefox'))`,
    );
    const { comments } = (await (await api(cluster, 'GET', `/threads/${thread.id}`)).json()) as {
      comments: { body: string; userId: string }[];
    };
    t.match(comments, [{ body: 'From REST' }, { body: 'Typed in Firefox', userId: 'ann' }]);
  });

  await t.test('whatever this browser can record is accepted, with its type and a duration', async (t) => {
    await uploadRecordings(t, cluster, await page.evaluate(recordEverything));
  });

  await t.test('a reader at the end of a long thread stays there, and one who scrolled up is not moved', async (t) => {
    const { items } = (await (await api(cluster, 'GET', '/rooms/demo/threads')).json()) as { items: { id: string }[] };
    const reply = (body: string): Promise<Response> =>
      api(cluster, 'POST', `/threads/${items[0]?.id}/comments`, { userId: 'ci-bot', body });
    const list = `${root}.querySelector('.comments')`;
    const last = `[...${list}.querySelectorAll('.comment')].at(-1)`;
    const distance = `(${last}.getBoundingClientRect().bottom - ${list}.getBoundingClientRect().bottom)`;
    for (let number = 1; number < 26; number += 1) await reply(`Number ${number}`);
    await t.resolves(holds(`${last}.innerText.includes('Number 25') && ${distance} <= 1`), 'at the end');
    const place = `(${list}.querySelectorAll('.comment')[12].getBoundingClientRect().top - ${list}.getBoundingClientRect().top)`;
    await page.evaluate(`${list}.querySelectorAll('.comment')[12].scrollIntoView()`);
    await reply('While someone reads');
    await t.resolves(
      holds(`${last}.innerText.includes('While someone reads') && Math.abs(${place}) < 2`),
      'further up',
    );
  });

  await t.test('a PATCH that resolves it and a DELETE are shown', async (t) => {
    const { items } = (await (await api(cluster, 'GET', '/rooms/demo/threads')).json()) as { items: { id: string }[] };
    const id = items[0]?.id ?? '';
    await api(cluster, 'PATCH', `/threads/${id}`, { resolved: true });
    await holds(`${root}.querySelector('.popover .tag.success')`);
    await api(cluster, 'DELETE', `/threads/${id}`);
    await holds(`${root}.querySelector('.pin') === null && ${root}.querySelector('.popover') === null`);
    t.pass();
  });
});
