import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import WebSocket from 'ws';
import { tempFolder } from './temp-folder.ts';

const program = '/usr/bin/firefox-esr';

/** Why tests in Firefox cannot run here; false if they can, or must (`REQUIRE_BROWSER`, set by .ci/run). */
export const firefoxSkipReason: string | false =
  existsSync(program) || process.env['REQUIRE_BROWSER'] === '1' ? false : `no Firefox here (${program})`;

/** What takes processor time beside the page: services of Mozilla, processes in reserve, animations. */
const preferences: Readonly<Record<string, string | number | boolean>> = {
  'app.normandy.enabled': false,
  'app.update.disabledForTesting': true,
  'browser.newtabpage.enabled': false,
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.search.update': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'browser.startup.page': 0,
  'datareporting.policy.dataSubmissionEnabled': false,
  'dom.ipc.processCount': 1,
  'dom.ipc.processPrelaunch.enabled': false,
  'extensions.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.enabled': false,
  'ui.prefersReducedMotion': 1,
};

/** A tab of Firefox, driven by WebDriver BiDi: playwright-core drives only a Firefox of its own. */
export interface FirefoxPage {
  /** Opens an address, and waits until it is loaded. */
  open(url: string): Promise<void>;
  /** Evaluates an expression in the page, and waits if it is a promise. Rejects with what it throws. Returns text. */
  evaluate(expression: string): Promise<string>;
  /** Presses the keys of a text one after the other, in the element that has the focus. */
  type(text: string): Promise<void>;
}

interface Answer {
  readonly id?: number;
  readonly type: 'success' | 'error' | 'event';
  readonly message?: string;
  readonly result?: unknown;
}

/** Starts Firefox with a new profile. It ends with the test. */
export async function openFirefox(t: Test): Promise<FirefoxPage> {
  const profile = tempFolder(t);
  const lines = Object.entries(preferences).map((entry) => `user_pref(${JSON.stringify(entry).slice(1, -1)});\n`);
  writeFileSync(join(profile, 'user.js'), lines.join(''));
  const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', 'about:blank'];
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: profile, MOZ_DISABLE_AUTO_SAFE_MODE: '1' },
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const send = await connect(t, await addressOf(child.stderr));
  await send('session.new', { capabilities: {} });
  const { contexts } = (await send('browsingContext.getTree', {})) as { contexts: { context: string }[] };
  const context = contexts[0]?.context;
  return {
    open: async (url) => void (await send('browsingContext.navigate', { context, url, wait: 'complete' })),
    evaluate: async (expression) => {
      const answer = (await send('script.evaluate', { expression, target: { context }, awaitPromise: true })) as {
        result?: { value?: unknown };
        exceptionDetails?: { text: string };
      };
      if (answer.exceptionDetails !== undefined) throw new Error(answer.exceptionDetails.text);
      return String(answer.result?.value);
    },
    type: async (text) => {
      const actions = Array.from(text, (value) => [
        { type: 'keyDown', value },
        { type: 'keyUp', value },
      ]).flat();
      await send('input.performActions', { context, actions: [{ type: 'key', id: 'keyboard', actions }] });
    },
  };
}

/** The address that Firefox prints when it can be driven. */
async function addressOf(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(output)) {
    const address = /WebDriver BiDi listening on (ws:\S+)/.exec(line)?.[1];
    // Unread output would stop it.
    if (address !== undefined) return (output.resume(), `${address}/session`);
  }
  throw new Error('Firefox ended before it could be driven');
}

/** Connects. Resolves with a function that sends a command and resolves with its result. */
async function connect(t: Test, address: string): Promise<(method: string, params: object) => Promise<unknown>> {
  const socket = new WebSocket(address, { perMessageDeflate: false });
  t.teardown(() => socket.terminate());
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.on('message', (data: Buffer) => {
    const { id = 0, type, message, result } = JSON.parse(data.toString()) as Answer;
    if (type === 'success') waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(message));
    waiting.delete(id);
  });
  let last = 0;
  return (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      socket.send(JSON.stringify({ id: last, method, params }));
    });
}
