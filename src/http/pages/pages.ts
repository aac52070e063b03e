import type { Config } from '../../config/schema.ts';
import { CollabError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { isOwnHost } from './demo-host.ts';
import { docsFiles, sendDocs } from './docs-page.ts';
import { jsonHead } from '../core/content-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';
import { Health, type HealthDeps } from '../health.ts';
import { SDK_PREFIX, sendSdk } from './sdk-files.ts';
import { sendError, routeNotFound } from '../core/send-error.ts';
import { Router } from '../core/router.ts';
import { anyOrigin, sendStaticFile } from './static-file.ts';
import { widgetFiles } from './widget-files.ts';

/** The demo page: its files, and the endpoint that it calls. */
export interface DemoPage {
  /** Path -> content type and content. */
  readonly files: Readonly<Record<string, { readonly type: string; readonly text: string; readonly framed: boolean }>>;
  /** Returns what a browser needs to connect as a user, as JSON text. Rejects with `CollabError`. */
  session(userId: string): Promise<string>;
}

/** Answers a request for a page. */
type PageHandler = (exchange: Exchange, headers: readonly Header[]) => Promise<void>;

/**
 * Serves everything outside the API: health, the SDK, the script of the widget, and the API reference and the demo page
 * if they are configured. Needs no credential and counts against no limit.
 */
export class Pages {
  readonly #router = new Router<PageHandler>();
  readonly #log: Logger;
  readonly #config: Config;

  /** @param demo served while `config.demo` is true */
  constructor(health: HealthDeps, config: Config, demo: DemoPage | null) {
    this.#log = health.log;
    this.#config = config;
    this.#addHealth(new Health(health));
    if (config.demo && demo !== null) this.#addDemo(demo);
    this.#addWidget();
    this.#router.add('GET', `${SDK_PREFIX}:file`, sendSdk);
    if (config.docs)
      for (const path of Object.keys(docsFiles))
        this.#router.add('GET', path, (exchange, headers) => sendDocs(exchange, path, headers));
  }

  /** Answers any request. Never rejects. */
  async serve(exchange: Exchange): Promise<void> {
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    try {
      const match = this.#router.find(exchange.head.method, exchange.head.path);
      if (match === null) throw routeNotFound(exchange.head);
      exchange.route = match.pattern;
      await match.target(exchange, headers);
    } catch (thrown) {
      sendError(this.#log, exchange, thrown, headers);
    }
  }

  #addHealth(health: Health): void {
    const ready: PageHandler = async (exchange, headers) => {
      const report = await health.report();
      exchange.send(report.status === 'ok' ? 200 : 503, [jsonHead, ...headers], JSON.stringify(report));
    };
    this.#router.add('GET', '/livez', (exchange, headers) => {
      exchange.send(200, [jsonHead, ...headers], '{"status":"ok"}');
      return Promise.resolve();
    });
    this.#router.add('GET', '/readyz', ready);
    this.#router.add('GET', '/healthz', ready);
  }

  #addWidget(): void {
    for (const [path, file] of widgetFiles())
      this.#router.add('GET', path, (exchange, headers) => sendStaticFile(exchange, file, [...anyOrigin, ...headers]));
  }

  #addDemo(demo: DemoPage): void {
    for (const [path, file] of Object.entries(demo.files)) this.#router.add('GET', path, staticFile(file));
    this.#router.add('GET', '/demo/session', async (exchange, headers) => {
      if (!isOwnHost(exchange.head.host, this.#config)) {
        throw new CollabError(
          'forbidden',
          'Host must be localhost, an IP address, or the host of publicUrl: pages of other sites may not use the demo',
        );
      }
      const user = new URLSearchParams(exchange.head.query).get('user') ?? '';
      exchange.send(200, [jsonHead, ...headers], await demo.session(user));
    });
  }
}

// Some browsers do not count a WebSocket to the page's own host as 'self'. The widget shows attachments as blob: URLs.
const PAGE_POLICY =
  "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' blob: https:; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors";

/** A page of constant content. */
function staticFile({ type, text, framed }: DemoPage['files'][string]): PageHandler {
  const fixed: Header[] = [
    ['Content-Type', type],
    ['Cache-Control', 'no-cache'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Content-Security-Policy', `${PAGE_POLICY} '${framed ? 'self' : 'none'}'`],
    ['Referrer-Policy', 'no-referrer'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
  ];
  const bytes = Buffer.from(text);
  return (exchange, headers) => {
    exchange.send(200, [...fixed, ...headers], bytes);
    return Promise.resolve();
  };
}
