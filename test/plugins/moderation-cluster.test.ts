import t from 'tap';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';
import { startReceiver } from '../helpers/receiver.ts';

interface Page {
  readonly items: readonly { id: string; body: string }[];
}

t.test(
  'moderation-rules and moderation-http hold, refuse and let pass; an approved comment is published',
  async (t) => {
    const service = await startReceiver(t, (response, { body }) => {
      const { data } = JSON.parse(String(body)) as { data: { comment: { body: string } } };
      if (!data.comment.body.includes('score')) response.writeHead(204).end();
      else
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"verdict":"hold","reason":"score 0.7"}');
    });
    const { call, run, thread } = await startPluginCluster(t, [
      {
        use: 'moderation-rules',
        config: {
          exemptBackends: false,
          rules: [
            { type: 'words', words: ['viagra'], name: 'advertising' },
            { type: 'words', words: ['spam'], action: 'reject', message: 'No spam, please.' },
          ],
        },
      },
      {
        use: 'moderation-http',
        allowPrivate: true,
        config: { url: service.url, secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}`, exemptBackends: false },
      },
    ]);
    const id = await thread('Hello');
    const comment = (body: string) => call('POST', `/threads/${id}/comments`, { userId: 'bob', body });
    const listed = async (): Promise<string[]> =>
      ((await call('GET', `/threads/${id}/comments`)).body as unknown as Page).items.map(({ body }) => body);

    t.match(await comment('Buy v1agra'), { status: 201, body: { comment: { status: 'held', body: 'Buy v1agra' } } });
    t.match(await comment('A high score'), { status: 201, body: { comment: { status: 'held' } } });
    t.match(await comment('This is spam'), { status: 403, body: { error: 'No spam, please.' } });
    t.match(await comment('Fine'), { status: 201, body: { comment: { body: 'Fine' } } });
    t.strictSame(await listed(), ['Hello', 'Fine']);

    const { items } = await run<Page>('moderation', 'list');
    t.match(items, [
      { plugin: 'moderation-rules', reason: /advertising/ },
      { plugin: 'moderation-http', reason: 'score 0.7' },
    ]);
    t.match(await run('moderation', 'approve', items[0]?.id ?? ''), { state: 'approved' });
    t.match(await run('moderation', 'reject', items[1]?.id ?? '', '--reason', 'Too high.', '--yes'), {
      state: 'rejected',
    });
    t.strictSame(await listed(), ['Hello', 'Fine', 'Buy v1agra']);
  },
);
