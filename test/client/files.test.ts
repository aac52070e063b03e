import t from 'tap';
import { SessionFiles } from '../../src/client/files/session-files.ts';
import type { UploadRequest } from '../../src/client/platform.ts';
import { Credentials } from '../../src/client/session/credentials.ts';
import type { Attachment } from '../../src/model/attachment.ts';

const attachment: Attachment = {
  id: 'at_1',
  type: 'image',
  url: 'https://x.example/api/v1/files/at_1',
  filename: 'dot.png',
  mimeType: 'image/png',
  sizeBytes: 3,
};

/** A request for a file. It fails when its signal aborts, as those of `fetch` do. */
interface Request {
  succeed(): void;
  fail(): void;
}

/** Files whose requests wait until the test answers them. `requested` resolves once there were so many. */
function openFiles(): { files: SessionFiles; requests: Request[]; requested(count: number): Promise<void> } {
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = (_, init) =>
    new Promise((resolve, reject) => {
      if (init?.signal?.aborted === true) return reject(new DOMException('aborted', 'AbortError'));
      init?.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
      requests.push({ succeed: () => resolve(new Response('png')), fail: () => reject(new TypeError('fetch failed')) });
    });
  const files = new SessionFiles({
    serverUrl: 'https://x.example',
    credentials: new Credentials('pk_a', () => 'a.b.c'),
    fetch,
  });
  const requested = async (count: number): Promise<void> => {
    while (requests.length < count) await new Promise(setImmediate);
  };
  return { files, requests, requested };
}

t.test('a caller that cancels stops waiting for the URL of a file, and the others get it', async (t) => {
  const { files, requests, requested } = openFiles();
  const [first, third] = [new AbortController(), new AbortController()];
  const cancelled = files.url(attachment, { signal: first.signal });
  const shared = files.url(attachment);
  const later = files.url(attachment, { signal: third.signal });
  await requested(1);
  first.abort();
  await t.rejects(cancelled, { code: 'aborted', message: /dot\.png/ });
  third.abort();
  await t.rejects(later, { code: 'aborted' }, 'also one that did not begin the load');
  requests[0]?.succeed();
  const address = await shared;
  t.match(address, /^blob:/);
  t.equal(await files.url(attachment, { signal: new AbortController().signal }), address);
  await t.rejects(files.url(attachment, { signal: first.signal }), { code: 'aborted' });
  t.equal(requests.length, 1, 'fetched once');
  files.close();
});

t.test('the URL of a file is not loaded for a caller that has cancelled already', async (t) => {
  const { files, requests, requested } = openFiles();
  await t.rejects(files.url(attachment, { signal: AbortSignal.abort() }), { code: 'aborted' });
  const url = files.url(attachment);
  await requested(1);
  t.equal(requests.length, 1);
  requests[0]?.succeed();
  t.match(await url, /^blob:/);
  files.close();
});

t.test('a load that fails is tried again by the next call', async (t) => {
  const { files, requests, requested } = openFiles();
  const failed = files.url(attachment);
  await requested(1);
  requests[0]?.fail();
  await t.rejects(failed, { code: 'network' });
  const url = files.url(attachment);
  await requested(2);
  requests[1]?.succeed();
  t.match(await url, /^blob:/);
  files.close();
});

t.test('a load that fails after its file was released does not drop the one that follows', async (t) => {
  const { files, requests, requested } = openFiles();
  const released = files.url(attachment);
  await requested(1);
  files.release(attachment);
  const url = files.url(attachment);
  await requested(2);
  requests[0]?.fail();
  await t.rejects(released, { code: 'network' });
  requests[1]?.succeed();
  const address = await url;
  t.equal(await files.url(attachment), address);
  t.equal(requests.length, 2, 'fetched once more');
  files.close();
});

t.test('an upload through XMLHttpRequest ends when it is cancelled or the connection fails', async (t) => {
  const sent: (UploadRequest & { aborted: number })[] = [];
  class FakeRequest implements UploadRequest {
    readonly upload = { onprogress: null };
    readonly status = 200;
    readonly responseText = JSON.stringify(attachment);
    aborted = 0;
    onload: UploadRequest['onload'] = null;
    onerror: UploadRequest['onerror'] = null;
    open(): void {}
    setRequestHeader(): void {}
    getResponseHeader(): null {
      return null;
    }
    send(): void {
      sent.push(this);
    }
    abort(): void {
      this.aborted++;
    }
  }
  t.intercept(globalThis as { XMLHttpRequest?: unknown }, 'XMLHttpRequest', { value: FakeRequest });
  const { files } = openFiles();
  const sentFile = async (
    signal?: AbortSignal,
  ): Promise<{ upload: Promise<Attachment>; request: (typeof sent)[number] | undefined }> => {
    const before = sent.length;
    const upload = files.upload(new Blob(['png']), { signal });
    while (sent.length === before) await new Promise(setImmediate);
    return { upload, request: sent.at(-1) };
  };

  const cancel = new AbortController();
  const cancelled = await sentFile(cancel.signal);
  cancel.abort();
  await t.rejects(cancelled.upload, { code: 'aborted', message: 'The upload was cancelled.' });
  t.equal(cancelled.request?.aborted, 1);

  const failed = await sentFile();
  failed.request?.onerror?.({});
  await t.rejects(failed.upload, { code: 'network', message: /^The upload failed/ });

  const later = new AbortController();
  const good = await sentFile(later.signal);
  good.request?.onload?.();
  t.match(await good.upload, { id: 'at_1' });
  later.abort();
  t.equal(good.request?.aborted, 0, 'not after its end');
  await t.rejects(files.upload(new Blob(['png']), { signal: later.signal }), { code: 'aborted' });
  t.equal(sent.length, 3, 'nothing is sent after the signal has aborted');
});
