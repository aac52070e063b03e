import type { Config } from '../../config/schema.ts';
import { CollabError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { isOwnHost } from './demo-host.ts';
import { docsFiles, sendDocs } from './docs-page.ts';
import { jsonHead } from '../core/content-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';
import { Health, type HealthDeps } from '../health.ts';
import { answerFailure, routeNotFound } from '../core/refusal.ts';
import { Router } from '../core/router.ts';

/** The demo page: its files, and the endpoint that it calls. */
export interface DemoPage {
  readonly page: { readonly html: string; readonly script: string; readonly style: string; readonly icon: string };
  /** Returns what a browser needs to connect as a user, as JSON text. Rejects with `CollabError`. */
  session(userId: string): Promise<string>;
}

/** Answers a request for a page. */
type PageHandler = (exchange: Exchange, headers: readonly Header[]) => void | Promise<void>;

/** Serves everything outside the API: health, and the API reference and the demo page if they are configured. Needs no credential and counts against no limit. */
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
    if (config.docs) for (const path of Object.keys(docsFiles)) this.#router.add('GET', path, (exchange, headers) => sendDocs(exchange, path, headers));
  }

  /** Answers any request. Never rejects. */
  async serve(exchange: Exchange): Promise<void> {
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    try {
      const match = this.#router.find(exchange.head.method, exchange.head.path);
      if (match === null) throw routeNotFound();
      exchange.route = match.pattern;
      await match.target(exchange, headers);
    } catch (thrown) {
      answerFailure(this.#log, exchange, thrown, headers);
    }
  }

  #addHealth(health: Health): void {
    const ready: PageHandler = async (exchange, headers) => {
      const report = await health.report();
      exchange.send(report.status === 'ok' ? 200 : 503, [jsonHead, ...headers], JSON.stringify(report));
    };
    this.#router.add('GET', '/livez', (exchange, headers) => exchange.send(200, [jsonHead, ...headers], '{"status":"ok"}'));
    this.#router.add('GET', '/readyz', ready);
    this.#router.add('GET', '/healthz', ready);
  }

  #addDemo(demo: DemoPage): void {
    this.#router.add('GET', '/', staticFile('text/html; charset=utf-8', demo.page.html));
    this.#router.add('GET', '/demo/demo.js', staticFile('text/javascript; charset=utf-8', demo.page.script));
    this.#router.add('GET', '/demo/demo.css', staticFile('text/css; charset=utf-8', demo.page.style));
    this.#router.add('GET', '/demo/icon.svg', staticFile('image/svg+xml', demo.page.icon));
    this.#router.add('GET', '/demo/session', async (exchange, headers) => {
      if (!isOwnHost(exchange.head.host, this.#config)) {
        throw new CollabError('forbidden', 'Host must be localhost, an IP address, or the host of publicUrl: pages of other sites may not use the demo');
      }
      const user = new URLSearchParams(exchange.head.query).get('user') ?? '';
      exchange.send(200, [jsonHead, ...headers], await demo.session(user));
    });
  }
}

// Some browsers do not count a WebSocket to the page's own host as 'self'.
const PAGE_POLICY = "default-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A page of constant content. */
function staticFile(type: string, text: string): PageHandler {
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
