import { build } from 'esbuild';
import t from 'tap';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { startService } from '../helpers/service.ts';

// What runs in the page is text: it imports what the server hands out, and needs the types of browsers.

t.test('the browser build, as the server hands it out', { skip: skipReason }, async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('acme');
  await tenant.request('PUT', '/users/bot', { body: { name: 'CI' } });
  const browser = await openBrowser(t);
  const page = await browser.newPage();
  page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
  await page.goto(`${service.urls[0]}/sdk/manifest.json`);
  const credentials = JSON.stringify([tenant.publishableKey, await tenant.token({ userId: 'ann' })]);
  await page.evaluate(`(async () => {
    const { CollabSession } = await import('/sdk/collab.js');
    globalThis.open = ([publishableKey, token]) => new CollabSession({ publishableKey, token: () => token });
    globalThis.session = open(${credentials});
  })()`);
  const status = (wanted: string) => page.waitForFunction(`session.getSnapshot().status === ${JSON.stringify(wanted)}`);

  await t.test('connects, writes, uploads with progress and shows files', async (t) => {
    const result = (await page.evaluate(`(async () => {
      const room = session.room('page');
      await room.ready();
      room.subscribe(() => {});
      const canvas = new OffscreenCanvas(64, 64);
      canvas.getContext('2d').fillRect(0, 0, 32, 32);
      const image = await canvas.convertToBlob({ type: 'image/png' });
      const progress = [];
      const attachment = await session.files.upload(image, { filename: 'square.png', onProgress: (sent) => progress.push(sent) });
      const abort = new AbortController();
      const cancelled = session.files.upload(image, { signal: abort.signal }).catch((error) => error.code);
      abort.abort();
      const { id } = await room.createThread({ body: 'from a browser', attachmentIds: [attachment.id] });
      const picture = new Image();
      picture.src = await session.files.url(attachment);
      await picture.decode();
      return { id, width: picture.naturalWidth, last: progress.at(-1), size: image.size, cancelled: await cancelled };
    })()`)) as { id: string; width: number; last: number; size: number; cancelled: string };
    t.match(result, { width: 64, cancelled: 'aborted', last: result.size });
    t.match((await tenant.request('GET', `/threads/${result.id}`)).json, {
      comments: [{ body: 'from a browser', userId: 'ann', attachments: [{ filename: 'square.png' }] }],
    });
  });

  await t.test('goes offline and comes back by itself with what was written meanwhile', async (t) => {
    await status('live');
    await page.context().setOffline(true);
    await status('offline');
    const written = page.evaluate(
      `session.room('offline').createThread({ body: 'on a train' }).then(({ roomId }) => roomId)`,
    );
    await page.context().setOffline(false);
    t.equal(await written, 'offline');
    await status('live');
  });

  await t.test('a page of an origin that is not allowed gets a text for people', async (t) => {
    const strict = await service.tenant('strict', { allowedOrigins: ['https://app.example'] });
    const refused = JSON.stringify([strict.publishableKey, await strict.token({ userId: 'ann' })]);
    await page.evaluate(`globalThis.refused = open(${refused})`);
    await page.waitForFunction(`refused.getSnapshot().status === 'closed'`);
    t.match(await page.evaluate(`({ reason: refused.getSnapshot().reason, code: refused.getSnapshot().error.code })`), {
      code: 'origin_not_allowed',
      reason: /not enabled for the address of this page/,
    });
  });

  await t.test('React components are rendered again when a thread comes', async () => {
    const app = `
      import { createElement } from 'react';
      import { createRoot } from 'react-dom/client';
      import { CollabSession } from './src/client/main.ts';
      import { useCollabSession, usePresence, useThreads } from './src/client/react.ts';
      const [publishableKey, token] = ${credentials};
      const session = new CollabSession({ publishableKey, token: () => token });
      const App = () => {
        const threads = useThreads(session, 'react');
        const presence = usePresence(session, 'react');
        const { status } = useCollabSession(session);
        return createElement('p', {}, [status, presence.length, ...threads.map((thread) => thread.comments[0].body)].join(' '));
      };
      const root = document.body.appendChild(document.createElement('div'));
      createRoot(root).render(createElement(App));`;
    const { outputFiles } = await build({
      stdin: { contents: app, resolveDir: '.' },
      bundle: true,
      write: false,
      format: 'iife',
      define: { 'process.env.NODE_ENV': '"production"' },
    });
    await page.addScriptTag({ content: outputFiles[0]?.text ?? '' });
    await page.getByText('live 1', { exact: true }).waitFor();
    await tenant.request('POST', '/rooms/react/threads', { body: { userId: 'bot', body: 'hello' } });
    await page.getByText('live 1 hello', { exact: true }).waitFor();
  });
});
