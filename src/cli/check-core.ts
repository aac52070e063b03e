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
