import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';
import { Profiles } from './browser-profiles.ts';

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

/** The tabs of a context share a process, as far as they show one site; else each would start one. */
const SHARED_PROCESSES = '--renderer-process-limit=1';

const found = places.find((place) => existsSync(place));

/** Why browser tests can't run here; false when they can, or must (`REQUIRE_BROWSER`, set by .ci/run). */
export const skipReason: string | false =
  found !== undefined || process.env['REQUIRE_BROWSER'] === '1' ? false : `no Chromium here (${places.join(', ')})`;

/** How long an action waits for its element: long enough for a machine that is busy with other things. */
const DEADLINE_MS = 120_000;

/** What a test opens pages with: each context is a browser profile of its own, and ends with the test. */
export interface TestBrowser {
  /** A context without animations, which take a fifth of its processor time, unless `options` ask for them. */
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** A context that no later test is given, for what cannot be taken back, such as scripts of all its pages. */
  ownContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** A page in a context of its own. */
  newPage(options?: BrowserContextOptions): Promise<Page>;
}

/** A browser, and its contexts that no test uses now. */
interface Started {
  readonly browser: Browser;
  readonly profiles: Profiles;
}

/**
 * The browser of this process; the files that `npm test` runs in one process share it, as starting one takes seconds.
 */
let shared: Promise<Started> | undefined;

/**
 * Gives a test a browser.
 *
 * @param ownProcesses a browser for this test alone in which each tab has its own process, so that one can crash
 */
export async function openBrowser(t: Test, { ownProcesses = false } = {}): Promise<TestBrowser> {
  // Without the runner nothing ends the process while a browser runs.
  const own = ownProcesses || process.env['TEST_BUILD'] === undefined;
  const { browser, profiles } = await (own ? launch(ownProcesses ? flags : undefined) : sharedBrowser());
  if (own) t.teardown(() => browser.close());
  const newContext: TestBrowser['newContext'] = async (options = {}) => {
    const { context, giveBack } = await profiles.take({ reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(DEADLINE_MS);
    if (!own) t.teardown(giveBack);
    return context;
  };
  const ownContext: TestBrowser['ownContext'] = async (options) => {
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(DEADLINE_MS);
    if (!own) t.teardown(() => context.close());
    return context;
  };
  return { newContext, ownContext, newPage: async (options) => (await newContext(options)).newPage() };
}

/** The browser that files share, or a new one if it has crashed. */
async function sharedBrowser(): Promise<Started> {
  shared ??= launch();
  const started = await shared.catch((error: unknown) => {
    shared = undefined;
    throw error;
  });
  if (started.browser.isConnected()) return started;
  shared = undefined;
  return sharedBrowser();
}

async function launch(args = [...flags, SHARED_PROCESSES]): Promise<Started> {
  if (found === undefined) throw new Error(`a browser is required, and there is none at ${places.join(', ')}`);
  const browser = await chromium.launch({ executablePath: found, args });
  return { browser, profiles: new Profiles(browser) };
}
