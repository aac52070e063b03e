import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';

/**
 * The shell is Chromium without the browser around its pages, which takes two fifths of the processor time of a test
 * file. `CHROMIUM` names another one, as .ci/full does.
 */
const places = [
  ...(process.env['CHROMIUM'] === undefined ? [] : [process.env['CHROMIUM']]),
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

const flags = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  // Chromium's own microphone, which needs no permission and no hardware.
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
];

const found = places.find((place) => existsSync(place));

/** Why browser tests can't run here; false when they can, or must (`REQUIRE_BROWSER`, set by .ci/run). */
export const skipReason: string | false =
  found !== undefined || process.env['REQUIRE_BROWSER'] === '1' ? false : `no Chromium here (${places.join(', ')})`;

/** How long an action waits for its element: long enough for a machine that is busy with other things. */
const DEADLINE_MS = 120_000;

/** What a test opens pages with: each context is a browser profile of its own, and is closed with the test. */
export interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** A page in a context of its own. */
  newPage(options?: BrowserContextOptions): Promise<Page>;
}

/**
 * The browser of this process; the files that `npm test` runs in one process share it, as starting one takes seconds.
 */
let shared: Promise<Browser> | undefined;

/** Gives a test a browser. */
export async function openBrowser(t: Test): Promise<TestBrowser> {
  // Without the runner nothing ends the process while a browser runs.
  const own = process.env['TEST_BUILD'] === undefined;
  const browser = await (own ? launch() : sharedBrowser());
  if (own) t.teardown(() => browser.close());
  const newContext: TestBrowser['newContext'] = async (options) => {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(DEADLINE_MS);
    if (!own) t.teardown(() => context.close());
    return context;
  };
  return { newContext, newPage: async (options) => (await newContext(options)).newPage() };
}

/** The browser that files share, or a new one if it has crashed. */
async function sharedBrowser(): Promise<Browser> {
  shared ??= launch();
  const browser = await shared.catch((error: unknown) => {
    shared = undefined;
    throw error;
  });
  if (browser.isConnected()) return browser;
  shared = undefined;
  return sharedBrowser();
}

function launch(): Promise<Browser> {
  if (found === undefined) throw new Error(`a browser is required, and there is none at ${places.join(', ')}`);
  return chromium.launch({ executablePath: found, args: flags });
}
