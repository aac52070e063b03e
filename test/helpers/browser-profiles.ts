import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';

/** What a context can be given to another test with: the rest of it cannot be taken back. */
const KEPT_OPTIONS = new Set(['viewport', 'reducedMotion', 'colorScheme']);

interface Profile {
  readonly context: BrowserContext;
  /** A page that stays open and empty, and with it the process of the context. */
  readonly page: Page;
  /** The origins of which pages were open. */
  readonly origins: Set<string>;
}

/**
 * The contexts of a browser, which tests use one after the other. A page that is opened in the process of one before,
 * with scripts that are compiled already, takes three fifths of the processor time of the first one of a new context.
 * What the pages of a test have stored is removed with them.
 */
export class Profiles {
  readonly #browser: Browser;
  readonly #idle = new Map<string, Profile[]>();

  constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Gives out a context as new, and a function that ends its pages and takes it back. */
  async take(options: BrowserContextOptions): Promise<{ context: BrowserContext; giveBack: () => Promise<void> }> {
    const key = JSON.stringify(Object.entries(options).toSorted(([a], [b]) => a.localeCompare(b)));
    if (Object.keys(options).some((name) => !KEPT_OPTIONS.has(name))) {
      const context = await this.#browser.newContext(options);
      return { context, giveBack: () => context.close() };
    }
    const profile = this.#idle.get(key)?.pop() ?? (await this.#make(options));
    return {
      context: profile.context,
      giveBack: async () => {
        if (!(await cleaned(profile))) return profile.context.close();
        this.#idle.set(key, [...(this.#idle.get(key) ?? []), profile]);
      },
    };
  }

  async #make(options: BrowserContextOptions): Promise<Profile> {
    const context = await this.#browser.newContext(options);
    const origins = new Set<string>();
    const page = await context.newPage();
    context.on('page', (opened) => {
      opened.on('framenavigated', (frame) => {
        if (frame.url().startsWith('http')) origins.add(new URL(frame.url()).origin);
      });
    });
    return { context, page, origins };
  }
}

/** Makes a context as new. False if a test has closed or broken it. */
async function cleaned({ context, page, origins }: Profile): Promise<boolean> {
  try {
    for (const other of context.pages()) if (other !== page) await other.close();
    await context.setOffline(false);
    await context.clearPermissions();
    await context.unrouteAll();
    await context.clearCookies();
    const session = await context.newCDPSession(page);
    for (const origin of origins) await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' });
    await session.detach();
    origins.clear();
    return true;
  } catch {
    return false;
  }
}
