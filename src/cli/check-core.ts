import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type CoreTest, testCore } from '../http/core-test.ts';
import { createServer, type HttpServer, nativeCore } from '../http/listen.ts';
import { type Check, fail, ok, reasonOf, warn } from './check.ts';

const NAME = 'http core';

/**
 * Loads the HTTP core and sends text through it: `fail` where no core runs here, or where the one that runs would corrupt
 * what the server sends.
 */
export async function checkCore(newServer: () => HttpServer = createServer): Promise<Check> {
  let server: HttpServer;
  try {
    server = newServer();
  } catch (error) {
    return fail(NAME, reasonOf(error), 'Install one of these versions of Node that fits the system, and run `npm ci` again.');
  }
  return judge(await testCore(server));
}

/**
 * As `checkCore`, in a process of its own: the primary must not carry the HTTP core, and a core that crashes must not take
 * the start with it. `fail` as well where that process does not come back with a result within 20 s.
 */
export async function checkCoreApart(): Promise<Check> {
  const env = { ...process.env, COLLAB_ROLE: 'core-test' };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, process.argv[1] ?? ''], { env, timeout: 20_000 });
    return JSON.parse(stdout) as Check;
  } catch (error) {
    return fail(NAME, `${nativeCore().file} could not be tested: ${reasonOf(error)}`, 'Try another version of Node (20, 22 or 24), or `npm ci` again.');
  }
}

/** What the process that `checkCoreApart` starts does: prints what `checkCore` finds as JSON. */
export async function reportCore(): Promise<void> {
  process.stdout.write(JSON.stringify(await checkCore()));
}

function judge({ strings, bytes }: CoreTest): Check {
  const { file, old } = nativeCore();
  if (bytes === 'corrupted') {
    return fail(NAME, `${file} corrupts text: what the server sends is not what arrives`, 'Install another version of Node (20, 22 or 24), or `npm ci` again.');
  }
  if (bytes === 'untested') {
    return warn(NAME, `${file} could not be tested: nothing came back over 127.0.0.1`, 'Bring the loopback interface up.');
  }
  const note = strings === 'intact' ? '' : '; it would corrupt text given as strings, so the server gives it bytes';
  return ok(NAME, `${file}, ${old ? 'of 2024' : 'current'}${note}`);
}
