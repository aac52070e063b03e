import type { IncomingMessage } from 'node:http';
import type { CoreRequest } from '../core.ts';

/** The head of a request of Node's HTTP server. Unlike a native one, it stays valid. */
export class NodeRequest implements CoreRequest {
  readonly #message: IncomingMessage;

  constructor(message: IncomingMessage) {
    this.#message = message;
  }

  getCaseSensitiveMethod(): string {
    return this.#message.method ?? '';
  }

  getUrl(): string {
    const target = utf8(this.#message.url ?? '');
    const mark = target.indexOf('?');
    return mark < 0 ? target : target.slice(0, mark);
  }

  getQuery(): string | undefined {
    const target = utf8(this.#message.url ?? '');
    const mark = target.indexOf('?');
    return mark < 0 ? undefined : target.slice(mark + 1);
  }

  forEach(each: (name: string, value: string) => void): void {
    const { rawHeaders } = this.#message;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2)
      each((rawHeaders[i] as string).toLowerCase(), utf8(rawHeaders[i + 1] as string));
  }
}

/** Node decodes a head as Latin-1, the native core as UTF-8. */
function utf8(text: string): string {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, 'latin1').toString();
  return text;
}
