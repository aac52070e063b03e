import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium, type Page } from 'playwright-core';
import { type Collab, type Installation, installCollab, startCollab } from './collab.ts';
import { startOnEveryCore } from './cores.ts';
import type { Plan } from './plan.ts';
import { countBrowser } from './neighbours.ts';
import { mintToken } from './tokens.ts';

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
const flags = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-background-networking',
  '--no-first-run',
  '--js-flags=--expose-gc',
];

/**
 * Runs before the scripts of a page. `receivedAt`: when the widget last received a large message. `painted(selector,
 * text)` resolves with the time of the first frame that shows such an element with the text. `firstPaint` is the time
 * of the first frame with a pin. `recordPaints(selector)` notes the time of the first frame that shows the last such
 * element with a new text, until `recordedPaints()` returns the times since the epoch by text.
 */
const instruments = `
  window.sockets = new Set();
  window.receivedAt = 0;
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      sockets.add(this);
      this.addEventListener('close', () => sockets.delete(this));
      this.addEventListener('message', ({ data }) => { if (data.length > 10000) receivedAt = performance.now(); });
    }
  };
  const watch = (look) => {
    const observer = new MutationObserver(look);
    observer.observe(document.querySelector('collab-comments').shadowRoot, { childList: true, subtree: true, attributes: true, characterData: true });
    return observer;
  };
  const all = (selector) => [...document.querySelector('collab-comments').shadowRoot.querySelectorAll(selector)];
  // A frame is painted after its callbacks; a message is handled after that.
  const afterFrame = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => then(performance.now());
    port2.postMessage(null);
  });
  window.painted = (selector, text = '') => new Promise((resolve) => {
    const look = () => {
      if (!all(selector).some((found) => found.textContent.includes(text))) return;
      observer.disconnect();
      afterFrame(resolve);
    };
    const observer = watch(look);
    look();
  });
  window.firstPaint = new Promise((resolve) => {
    addEventListener('DOMContentLoaded', () => customElements.whenDefined('collab-comments').then(() => painted('.pin')).then(resolve));
  });
  window.recordPaints = (selector) => {
    const times = new Map(all(selector).map(({ textContent }) => [textContent, 0]));
    const observer = watch(() => {
      const text = all(selector).at(-1)?.textContent ?? '';
      if (times.has(text)) return;
      times.set(text, 0);
      afterFrame((now) => times.set(text, performance.timeOrigin + now));
    });
    window.recordedPaints = () => (observer.disconnect(), Object.fromEntries(times));
  };`;

/** Collab, and a browser whose pages show the widget for one room. */
export interface BrowserBench {
  readonly collab: Collab;
  /** Opens a page as a user, and waits until its widget is connected. */
  readonly open: (userId: string) => Promise<Page>;
  /** The module of the SDK, and what a session needs. */
  readonly sdk: { readonly url: string; readonly publishableKey: string; readonly token: (userId: string) => string };
  /** Calls REST with the secret key. */
  readonly call: <T>(method: string, path: string, body?: object) => Promise<T>;
}

/**
 * Runs the work with Collab on the server's core, the harness on the other one, and Chromium on every core, as on a
 * user's machine.
 */
export async function withBrowser<T>(plan: Plan, work: (bench: BrowserBench) => Promise<T>): Promise<T> {
  if (program === undefined) throw new Error('Chromium is missing: apt-get install chromium');
  const installation = installCollab(plan.bin);
  const collab = await startCollab(installation);
  const browser = await startOnEveryCore(() => chromium.launch({ executablePath: program, args: flags }));
  const counted = countBrowser();
  const host = createServer((request, response) => {
    const userId = new URL(request.url ?? '/', 'http://host').searchParams.get('user') ?? 'user-1';
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page(collab, installation, userId));
  });
  await once(host.listen(0, '127.0.0.1'), 'listening');
  try {
    return await work({
      collab,
      open: (userId) => open(browser, `http://127.0.0.1:${(host.address() as AddressInfo).port}/?user=${userId}`),
      sdk: {
        url: `http://127.0.0.1:${collab.server.port}`,
        publishableKey: installation.publishableKey,
        token: (userId) => mintToken(installation.jwtSecret, installation.jwtKid, userId),
      },
      call: (method, path, body) => call(collab, method, path, body),
    });
  } finally {
    counted.end();
    await browser.close();
    host.closeAllConnections();
    host.close();
    await collab.server.stop();
  }
}

function page({ server }: Collab, { publishableKey, jwtSecret, jwtKid }: Installation, userId: string): string {
  return `<!doctype html><html lang="en"><title>Bench</title><body><main style="height: 3000px"><h1>Quarterly figures</h1></main>
    <script type="module" src="http://127.0.0.1:${server.port}/widget.js"></script>
    <collab-comments room="room-0" publishable-key="${publishableKey}" token="${mintToken(jwtSecret, jwtKid, userId)}"></collab-comments></body></html>`;
}

async function open(browser: Browser, url: string): Promise<Page> {
  const opened = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  await opened.addInitScript(instruments);
  await opened.goto(url);
  await opened.locator('collab-comments .toolbar').waitFor();
  await opened.locator('collab-comments .connection').waitFor({ state: 'detached' });
  return opened;
}

async function call<T>({ server, authorization }: Collab, method: string, path: string, body?: object): Promise<T> {
  const headers = { 'content-type': 'application/json', authorization };
  const answer = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  const text = await answer.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
