import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import type { Test } from 'tap';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const flags = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

const found = places.find((place) => existsSync(place));

/** Why browser tests can't run here; false when they can, or must (`REQUIRE_BROWSER`, set by .ci/run). */
export const skipReason: string | false =
  found !== undefined || process.env['REQUIRE_BROWSER'] === '1' ? false : `no Chromium here (${places.join(', ')})`;

/** Starts a browser, with more flags of Chromium if given, that ends with the test. */
export async function openBrowser(t: Test, more: readonly string[] = []): Promise<Browser> {
  if (found === undefined) throw new Error(`a browser is required, and there is none at ${places.join(', ')}`);
  const browser = await chromium.launch({ executablePath: found, args: [...flags, ...more] });
  t.teardown(() => browser.close());
  return browser;
}
