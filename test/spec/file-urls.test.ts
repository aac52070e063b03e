import { request as httpRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import t from 'tap';
import { exportEnvironment } from '../../src/domain/transfer/export.ts';
import { epochOf } from '../../src/domain/events/streams.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import { picture } from '../fixtures/media.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { type Frame, isEvent } from '../helpers/socket.ts';
import { formOf } from '../helpers/upload.ts';

interface Holding {
  readonly attachments: readonly Attachment[];
}

/** The attachments of the comment that an event tells of. */
const attachmentsOf = (event: Frame): readonly Attachment[] | undefined =>
  (event.data as { comment?: Holding } | undefined)?.comment?.attachments;

const png = await picture(3, 2).png().toBuffer();

/** Asks under another `Host`, which fetch can't. */
async function askAs<T>(
  tenant: Tenant,
  host: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: Buffer,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${tenant.service.urls[0]}/api/v1${path}`,
      { method, headers: { ...headers, Host: host }, agent: false },
      (answer) => {
        json(answer).then((value) => resolve(value as T), reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

async function uploadAs(tenant: Tenant, host: string): Promise<Attachment> {
  const form = new Response(formOf({ bytes: png, type: 'image/png' }));
  const headers = {
    ...(await tenant.userHeaders({ userId: 'ann' })),
    'Content-Type': form.headers.get('content-type') ?? '',
  };
  return askAs<Attachment>(tenant, host, 'POST', '/upload', headers, Buffer.from(await form.arrayBuffer()));
}

t.test('the Host of an upload is in no answer to anybody else', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('files');
  const socket = await tenant.join({ userId: 'bob' });
  const named = tenant.open({
    headers: { ...(await tenant.userHeaders({ userId: 'cleo' })), Host: 'named.example:81' },
  });
  await named.frame('welcome');
  const attachment = await uploadAs(tenant, 'evil.example');
  const [own = ''] = service.urls;
  const path = `/files/${tenant.environment.id}/${attachment.id}`;
  const shown = (base: string): unknown[] => [
    { ...attachment, url: `${base}${path}`, thumbnailUrl: `${base}${path}?thumb=1` },
  ];
  t.strictSame([attachment], shown('http://evil.example'), 'the answer itself is for who asked');

  const body = { userId: 'ann', body: 'x', attachmentIds: [attachment.id] };
  const made = await tenant.request<{ thread: { id: string; comments: Holding[] } }>('POST', '/rooms/r1/threads', {
    body,
  });
  t.strictSame(made.json.thread.comments[0]?.attachments, shown(own));
  const { id } = made.json.thread;

  for (let time = 0; time < 2; time++) {
    const comments = await tenant.request<{ items: Holding[] }>('GET', `/threads/${id}/comments`);
    t.strictSame(comments.json.items[0]?.attachments, shown(own), 'a list');
  }
  const backend = { Authorization: `Bearer ${tenant.secretKey}` };
  const elsewhere = await askAs<{ items: Holding[] }>(
    tenant,
    'other.example',
    'GET',
    `/threads/${id}/comments`,
    backend,
  );
  t.strictSame(elsewhere.items[0]?.attachments, shown('http://other.example'), 'a list under another name');
  t.strictSame(
    (await tenant.request<{ items: Holding[] }>('GET', `/threads/${id}/comments`)).json.items[0]?.attachments,
    shown(own),
    'and again',
  );
  t.strictSame(
    (await tenant.request<{ comments: Holding[] }>('GET', `/threads/${id}`)).json.comments[0]?.attachments,
    shown(own),
    'a thread',
  );
  const room = await tenant.request<{ threads: { comments: Holding[] }[] }>('GET', '/rooms/r1?include=comments');
  t.strictSame(room.json.threads[0]?.comments[0]?.attachments, shown(own), 'a room');
  const log = await tenant.request<{ items: { type: string; data: { comment: Holding } }[] }>('GET', '/events');
  t.strictSame(
    log.json.items.find(({ type }) => type === 'thread.created')?.data.comment.attachments,
    shown(own),
    'the log',
  );

  for (const [one, base] of [
    [socket, own],
    [named, 'http://named.example:81'],
  ] as const) {
    const event = await one.frame('thread.created');
    t.strictSame(attachmentsOf(event), shown(base), 'an event');
    const read = await one.request('thread.get', { threadId: id });
    t.strictSame(
      (read.data as { comments?: Holding[] } | undefined)?.comments?.[0]?.attachments,
      shown(base),
      'a read over the socket',
    );
  }
  const late = await tenant.join(
    { userId: 'dan' },
    { search: `?epoch=${epochOf(service.ctx.store, tenant.environment)}&since=0` },
  );
  const replayed = await late.until(() =>
    late.frames.find((frame) => isEvent(frame) && frame.type === 'thread.created'),
  );
  t.strictSame(attachmentsOf(replayed), shown(own), 'a replay');
  const edited = await editOnly(tenant, id);
  t.strictSame(edited, shown(own), 'the answer to an edit');

  const stream = await fetch(`${own}/api/v1/events?since=0`, { headers: { ...backend, Accept: 'text/event-stream' } });
  let text = '';
  for await (const chunk of stream.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes('comment.updated')) break;
  }
  t.ok(text.includes(`"url":"${own}${path}"`), 'a stream');
  t.notMatch(text, 'evil.example');
  let stored = '';
  for await (const line of exportEnvironment(service.ctx, tenant.environment, {
    withSecrets: true,
    onMissing: () => undefined,
  }))
    stored += line;
  t.match(stored, `"url":"${path}"`);
  t.notMatch(stored, 'evil.example', 'nor is it stored');
});

/** Edits the only comment of a thread and gives its attachments as answered. */
async function editOnly(tenant: Tenant, threadId: string): Promise<unknown> {
  const { json: list } = await tenant.request<{ items: { id: string }[] }>('GET', `/threads/${threadId}/comments`);
  const answer = await tenant.request<{ comment: Holding }>('PATCH', `/comments/${list.items[0]?.id}`, {
    body: { body: 'y' },
  });
  return answer.json.comment.attachments;
}

t.test('with publicUrl every address begins with it', async (t) => {
  const service = await startService(t, { flags: { publicUrl: 'https://comments.example.com/base' } });
  const tenant = await service.tenant('named');
  const socket = await tenant.join({ userId: 'bob' });
  const attachment = await uploadAs(tenant, 'evil.example');
  const url = `https://comments.example.com/base/files/${tenant.environment.id}/${attachment.id}`;
  t.equal(attachment.url, url);
  const made = await tenant.request<{ thread: { comments: Holding[] } }>('POST', '/rooms/r1/threads', {
    body: { userId: 'ann', body: 'x', attachmentIds: [attachment.id] },
  });
  t.equal(made.json.thread.comments[0]?.attachments[0]?.url, url);
  t.equal(attachmentsOf(await socket.frame('thread.created'))?.[0]?.url, url);
});
