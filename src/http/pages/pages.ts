import type { Config } from '../../config/schema.ts';
import { CollabError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { isOwnHost } from './demo-host.ts';
import { docsFiles, sendDocs } from './docs-page.ts';
import { jsonHead } from '../core/content-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';
import { Health, type HealthDeps } from '../health.ts';
import { answerFailure } from '../core/refusal.ts';
import { Router } from '../core/router.ts';

/** The demo page: its files and what it asks the server for. */
export interface DemoPage {
  readonly page: { readonly html: string; readonly script: string; readonly style: string; readonly icon: string };
  /** JSON text of what a browser needs to connect as that user. Rejects with `CollabError`. */
  session(userId: string): Promise<string>;
}

type Page = (exchange: Exchange, headers: readonly Header[]) => void | Promise<void>;

/** Everything outside the API: health, the API reference and the demo page where they are wanted. Needs no credential, counts for no limit. */
export class Pages {
  readonly #router = new Router<Page>();
  readonly #log: Logger;
  readonly #config: Config;

  /** @param demo served while `config.demo` is true */
  constructor(health: HealthDeps, config: Config, demo: DemoPage | null) {
    this.#log = health.log;
    this.#config = config;
    this.#addHealth(new Health(health));
    if (config.demo && demo !== null) this.#addDemo(demo);
    if (config.docs) for (const path of Object.keys(docsFiles)) this.#router.add('GET', path, (exchange, headers) => sendDocs(exchange, path, headers));
  }

  /** Answers any request. */
  async serve(exchange: Exchange): Promise<void> {
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    try {
      const found = this.#router.find(exchange.head.method, exchange.head.path);
      if (found === null) throw new CollabError('route_not_found', 'There is nothing at this path, or not with this method');
      exchange.route = found.pattern;
      await found.target(exchange, headers);
    } catch (thrown) {
      answerFailure(this.#log, exchange, thrown, headers);
    }
  }

  #addHealth(health: Health): void {
    const ready: Page = async (exchange, headers) => {
      const report = await health.report();
      exchange.send(report.status === 'ok' ? 200 : 503, [jsonHead, ...headers], JSON.stringify(report));
    };
    this.#router.add('GET', '/livez', (exchange, headers) => exchange.send(200, [jsonHead, ...headers], '{"status":"ok"}'));
    this.#router.add('GET', '/readyz', ready);
    this.#router.add('GET', '/healthz', ready);
  }

  #addDemo(demo: DemoPage): void {
    this.#router.add('GET', '/', file('text/html; charset=utf-8', demo.page.html));
    this.#router.add('GET', '/demo/demo.js', file('text/javascript; charset=utf-8', demo.page.script));
    this.#router.add('GET', '/demo/demo.css', file('text/css; charset=utf-8', demo.page.style));
    this.#router.add('GET', '/demo/icon.svg', file('image/svg+xml', demo.page.icon));
    this.#router.add('GET', '/demo/session', async (exchange, headers) => {
      if (!isOwnHost(exchange.head.host, this.#config)) {
        throw new CollabError('forbidden', 'Host must be localhost, an IP address, or the name in publicUrl: the demo is not for pages of other sites');
      }
      const user = new URLSearchParams(exchange.head.query).get('user') ?? '';
      exchange.send(200, [jsonHead, ...headers], await demo.session(user));
    });
  }
}

// Not every browser counts a WebSocket to the page's own host as 'self'.
const PAGE_POLICY = "default-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function file(type: string, text: string): Page {
  const fixed: Header[] = [
    ['Content-Type', type],
    ['Cache-Control', 'no-cache'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Content-Security-Policy', PAGE_POLICY],
    ['Referrer-Policy', 'no-referrer'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
  ];
  const bytes = Buffer.from(text);
  return (exchange, headers) => exchange.send(200, [...fixed, ...headers], bytes);
}
