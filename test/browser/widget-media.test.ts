import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { picture, wav } from '../fixtures/media.ts';
import { openBrowser, skipReason } from '../helpers/browser.ts';
import { until } from '../helpers/cluster.ts';
import { demoServer } from '../helpers/demo-server.ts';
import { recordEverything, uploadRecordings } from '../helpers/recordings.ts';
import { api, comment, openDemo, pin, popover } from '../helpers/widget-page.ts';

/** A file as a user has it on their disk. */
interface Chosen {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

/** A video of half a second that this browser has recorded. */
async function recordVideo(page: Page): Promise<Buffer> {
  const base64 = await page.evaluate<string>(`(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 48 });
    const context = canvas.getContext('2d');
    const draw = setInterval(() => { context.fillStyle = '#' + Math.random().toString(16).slice(2, 8).padEnd(6, '0'); context.fillRect(0, 0, 64, 48); }, 40);
    const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: 'video/webm' });
    const chunks = [];
    recorder.ondataavailable = ({ data }) => chunks.push(data);
    recorder.start(100);
    await new Promise((resolve) => { recorder.addEventListener('dataavailable', () => chunks.length >= 5 && resolve()); });
    const stopped = new Promise((resolve) => { recorder.onstop = resolve; });
    recorder.stop();
    await stopped;
    clearInterval(draw);
    const bytes = new Uint8Array(await new Blob(chunks).arrayBuffer());
    return btoa(String.fromCharCode(...bytes));
  })()`);
  return Buffer.from(base64, 'base64');
}

/** Drops a file on the field of the open thread, or pastes it there, as the browser reports it. */
async function hand(page: Page, event: 'drop' | 'paste', { name, mimeType, buffer }: Chosen): Promise<void> {
  const make =
    event === 'drop'
      ? "new DragEvent('drop', { dataTransfer: transfer"
      : "new ClipboardEvent('paste', { clipboardData: transfer";
  await page.evaluate(`(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob('${buffer.toString('base64')}'), (letter) => letter.charCodeAt(0))], '${name}', { type: '${mimeType}' }));
    const target = document.querySelector('collab-comments').shadowRoot.querySelector('.popover textarea');
    target.dispatchEvent(${make}, bubbles: true, cancelable: true, composed: true }));
  })()`);
}

t.test('files, recordings and pointers', { skip: skipReason }, async (t) => {
  const cluster = await demoServer(t);
  const browser = await openBrowser(t);
  const viewport = { width: 1200, height: 900 };
  const ann = await openDemo(t, await browser.newContext({ viewport }), cluster, 'ann');
  const bob = await openDemo(t, await browser.newContext({ viewport }), cluster, 'bob');
  const composer = popover(ann).locator('.composer');
  const newest = popover(bob).locator('.comment').last();
  await comment(ann, '#summary', 'Files');
  await pin(bob, 'Files').click();

  const files: readonly (Chosen & { readonly shown: string })[] = [
    { name: 'photo.jpg', mimeType: 'image/jpeg', buffer: await picture(40, 30).jpeg().toBuffer(), shown: '.thumb img' },
    { name: 'sound.wav', mimeType: 'audio/wav', buffer: wav(1), shown: 'audio' },
    { name: 'clip.webm', mimeType: 'video/webm', buffer: await recordVideo(ann), shown: 'video' },
  ];
  for (const { shown, ...file } of files) {
    await t.test(`${file.mimeType} | by chooser, drop and paste it reaches the other page`, async (t) => {
      const [kind, ending] = file.name.split('.');
      const named = (way: string): Chosen => ({ ...file, name: `${kind}-${way}.${ending}` });
      await composer.getByLabel('Attach a file').setInputFiles(named('chosen'));
      await hand(ann, 'drop', named('dropped'));
      await hand(ann, 'paste', named('pasted'));
      for (const way of ['chosen', 'dropped', 'pasted']) await composer.getByText(`${kind}-${way}.${ending}`).waitFor();
      await composer.locator('.upload').nth(2).waitFor();
      await composer.locator('progress').first().waitFor({ state: 'detached' });
      await composer.locator('textarea').fill(`Here are ${file.mimeType}`);
      await composer.locator('textarea').press('Enter');
      await popover(bob).getByText(`Here are ${file.mimeType}`).waitFor();
      await newest.scrollIntoViewIfNeeded();
      await newest.locator(shown).nth(2).waitFor();
      t.equal(await newest.locator(shown).count(), 3);
    });
  }

  await t.test('whatever this browser can record is accepted, with its type and a duration', async (t) => {
    await uploadRecordings(t, cluster, await ann.evaluate<string>(recordEverything));
  });

  await t.test('a video that the browser cannot play can be downloaded', async (t) => {
    const buffer = readFileSync(new URL('../fixtures/durations/silent-hevc.mp4', import.meta.url));
    await composer.getByLabel('Attach a file').setInputFiles({ name: 'phone.mp4', mimeType: 'video/mp4', buffer });
    await composer.getByText('phone.mp4').waitFor();
    await composer.locator('progress').waitFor({ state: 'detached' });
    await composer.locator('textarea').press('Enter');
    await newest.getByText('phone.mp4').scrollIntoViewIfNeeded();
    const link = newest.getByRole('link', { name: 'Not playable here: download' });
    const [download] = await Promise.all([bob.waitForEvent('download'), link.click()]);
    t.equal(download.suggestedFilename(), 'phone.mp4');
    t.same(readFileSync(await download.path()), buffer);
  });

  await t.test(
    'a voice message is recorded, played on the other page, and a cancelled one leaves nothing',
    async (t) => {
      await composer.getByRole('button', { name: 'Record a voice message' }).click();
      await composer.getByRole('button', { name: /Stop recording/ }).waitFor();
      await composer.getByRole('button', { name: 'Cancel' }).click();
      await composer.getByRole('button', { name: 'Record a voice message' }).waitFor();
      t.equal(await composer.locator('.upload').count(), 0);

      await composer.getByRole('button', { name: 'Record a voice message' }).click();
      // The label counts the seconds.
      await composer.getByRole('button', { name: /^Stop recording, 0:(?:0[2-9]|[1-5]\d)$/ }).click();
      await composer.getByText(/voice-.*\.webm/).waitFor();
      await composer.locator('progress').waitFor({ state: 'detached' });
      await composer.locator('textarea').press('Enter');
      const received = popover(bob).locator('.comment').nth(5);
      await received.scrollIntoViewIfNeeded();
      await received.getByLabel(/^voice-/).waitFor();
      await until(() =>
        bob.evaluate<boolean>(`(() => {
      const players = document.querySelector('collab-comments').shadowRoot.querySelectorAll('audio[aria-label^="voice-"]');
      return players.length === 1 && players[0].error === null && Number.isFinite(players[0].duration) && players[0].duration > 1 && players[0].currentTime === 0;
    })()`),
      );
      const { threads } = (await (await api(cluster, 'GET', '/rooms/demo?include=comments')).json()) as {
        threads: { comments?: { attachments: { type: string; durationMs?: number }[] }[] }[];
      };
      const sent = threads
        .flatMap(({ comments = [] }) => comments)
        .flatMap(({ attachments }) => attachments)
        .at(-1);
      t.match(sent, { type: 'audio' });
      t.ok((sent?.durationMs ?? 0) > 1_000, `${sent?.durationMs} ms were recorded`);
    },
  );

  await t.test('without a microphone the widget says what to do, and keeps what was typed', async (t) => {
    await ann.evaluate(
      "navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', 'NotAllowedError'))",
    );
    await composer.locator('textarea').fill('Half a sentence');
    await composer.getByRole('button', { name: 'Record a voice message' }).click();
    await ann.getByText('The microphone cannot be used. Allow it for this site, then try again.').waitFor();
    t.equal(await composer.locator('textarea').inputValue(), 'Half a sentence');
    await composer.locator('textarea').fill('');
  });

  await t.test('the pointer of another user is shown with the name, and goes with the user', async (t) => {
    const pointer = bob.locator('collab-comments .cursor', { hasText: 'Ann' });
    let x = 100;
    await until(async () => {
      await ann.mouse.move((x = x === 100 ? 140 : 100), 200);
      return (await pointer.count()) === 1;
    });
    t.equal(await ann.locator('collab-comments .cursor', { hasText: 'Ann' }).count(), 0, 'not the own one');
    await ann.mouse.move(1195, 200);
    await until(() =>
      bob.evaluate<boolean>(`(() => {
      const [arrow, name] = [...document.querySelector('collab-comments').shadowRoot.querySelectorAll('.cursor > *')].map((part) => part.getBoundingClientRect());
      return arrow?.left > innerWidth - 10 && name.right <= innerWidth;
    })()`),
    );
    await bob.evaluate("document.querySelector('collab-comments').cursors = false");
    await pointer.waitFor({ state: 'detached' });
  });
});
