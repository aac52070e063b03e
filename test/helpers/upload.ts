import { request as httpRequest } from 'node:http';
import type { Attachment } from '../../src/model/attachment.ts';
import { wav } from '../fixtures/media.ts';
import type { Tenant } from './service.ts';

/** A file to upload. */
export interface TestFile {
  readonly bytes: Buffer;
  readonly type: string;
  readonly name?: string;
}

export interface UploadAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Attachment & { readonly error: string };
}

/** Uploads a form: by default one part named `file`, as the user ann. */
export async function upload(
  tenant: Tenant,
  file: TestFile,
  { headers, form }: { headers?: Readonly<Record<string, string>>; form?: FormData } = {},
): Promise<UploadAnswer> {
  return postForm(tenant, form ?? formOf(file), headers);
}

/** Posts any body to the upload. */
export async function postForm(
  tenant: Tenant,
  body: FormData | Buffer | string,
  headers?: Readonly<Record<string, string>>,
): Promise<UploadAnswer> {
  const answer = await fetch(`${tenant.service.urls[0]}/api/v1/upload`, {
    method: 'POST',
    headers: headers ?? (await tenant.userHeaders({ userId: 'ann' })),
    body,
  });
  return { status: answer.status, headers: answer.headers, json: (await answer.json()) as UploadAnswer['json'] };
}

/** A form with the file as its part `file`. */
export function formOf({ bytes, type, name = 'name' }: TestFile): FormData {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)], { type }), name);
  return form;
}

/** Uploads a tenth of a second of sound to a server that runs as a process of its own. */
export async function uploadSound(
  server: { readonly url: string },
  keys: { readonly publishableKey: string },
  token: string,
): Promise<Attachment> {
  const headers = { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token };
  const answer = await fetch(`${server.url}/api/v1/upload`, {
    method: 'POST',
    headers,
    body: formOf({ bytes: wav(0.1), type: 'audio/wav' }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Attachment;
}

export interface FileAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** Asks for a file by its path or whole address, as the user ann. */
export async function getFile(
  tenant: Tenant,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<FileAnswer> {
  const answer = await fetch(new URL(path, tenant.service.urls[0]), {
    method,
    headers: { ...(await tenant.userHeaders({ userId: 'ann' })), ...headers },
  });
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) };
}

/**
 * Sends the head of an upload, then up to `size` zeros until a response comes. Returns the response, and how many bytes
 * were sent. With `chunked` the request does not declare its length.
 */
export async function sendUntilAnswered(
  tenant: Tenant,
  size: number,
  type: string,
  { chunked = false } = {},
): Promise<{ status: number; body: string; sent: number }> {
  const head = `--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\nContent-Type: ${type}\r\n\r\n`;
  const length = chunked ? {} : { 'Content-Length': String(head.length + size + 9) };
  const headers = {
    ...(await tenant.userHeaders({ userId: 'ann' })),
    'Content-Type': 'multipart/form-data; boundary=b',
    ...length,
  };
  return new Promise((resolve, reject) => {
    const zeros = Buffer.alloc(256 * 1024);
    let sent = 0;
    let answered = false;
    const request = httpRequest(`${tenant.service.urls[0]}/api/v1/upload`, { method: 'POST', headers }, (response) => {
      answered = true;
      let body = '';
      response.on('data', (text) => (body += String(text)));
      response.on('end', () => {
        request.destroy();
        resolve({ status: response.statusCode ?? 0, body, sent });
      });
    });
    request.on('error', (error) => answered || reject(error));
    const go = (): void => {
      while (!answered && sent < size) {
        sent += zeros.length;
        if (!request.write(zeros)) return void request.once('drain', go);
      }
    };
    request.write(head);
    go();
  });
}

/** Sends the first `size` bytes of a longer upload and cuts the connection. */
export async function abandonUpload(tenant: Tenant, size: number): Promise<void> {
  const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\nContent-Type: video/mp4\r\n\r\n';
  const headers = {
    ...(await tenant.userHeaders({ userId: 'ann' })),
    'Content-Type': 'multipart/form-data; boundary=b',
    'Content-Length': String(size * 2),
  };
  const request = httpRequest(`${tenant.service.urls[0]}/api/v1/upload`, { method: 'POST', headers });
  request.on('error', () => undefined);
  await new Promise<void>((resolve) =>
    request.write(Buffer.concat([Buffer.from(head), Buffer.alloc(size)]), () => resolve()),
  );
  request.destroy();
}
