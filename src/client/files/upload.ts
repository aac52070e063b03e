import type { Attachment } from '../../model/attachment.ts';
import { untilAborted } from '../abort.ts';
import { responseError, type ResponseHead, parseResponse } from '../http.ts';
import { platform } from '../platform.ts';
import type { UploadOptions } from './files.ts';

/** A file on its way to the server. */
export interface UploadCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: Blob;
  readonly filename: string;
  readonly options: Pick<UploadOptions, 'onProgress' | 'signal'>;
  readonly fetch: typeof fetch;
}

/**
 * Sends a file as multipart/form-data: with `XMLHttpRequest` where there is one, because only that reports progress.
 */
export async function sendUpload(call: UploadCall): Promise<Attachment> {
  const form = new FormData();
  form.append('file', call.file, call.filename);
  const request = platform.XMLHttpRequest && new platform.XMLHttpRequest();
  const { head, body } = await untilAborted(
    call.options.signal,
    'The upload',
    () => (request === undefined ? sendByFetch(call, form) : sendByRequest(call, form, request)),
    () => request?.abort(),
  );
  if (head.status !== 200) throw responseError(head, body);
  return parseResponse(body, head) as Attachment;
}

interface Received {
  readonly head: ResponseHead;
  readonly body: string;
}

async function sendByFetch(
  { url, headers, file, options, fetch: send }: UploadCall,
  body: FormData,
): Promise<Received> {
  const response = await send(url, { method: 'POST', headers, body, signal: options.signal });
  const text = await response.text();
  options.onProgress?.(file.size, file.size);
  return { head: { status: response.status, header: (name) => response.headers.get(name) }, body: text };
}

function sendByRequest(
  { url, headers, file, options: { onProgress } }: UploadCall,
  form: FormData,
  request: InstanceType<NonNullable<typeof platform.XMLHttpRequest>>,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    // The form around the file is not part of what the user waits for.
    request.upload.onprogress = ({ loaded, total }) =>
      onProgress?.(Math.round((file.size * loaded) / Math.max(1, total)), file.size);
    request.onload = () =>
      resolve({
        head: { status: request.status, header: (name) => request.getResponseHeader(name) },
        body: request.responseText,
      });
    request.onerror = reject;
    request.open('POST', url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.send(form);
  });
}
