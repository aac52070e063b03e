import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

const root = fileURLToPath(new URL('../..', import.meta.url));
const redocly = fileURLToPath(new URL('../../node_modules/@redocly/cli/bin/cli.js', import.meta.url));

interface Report {
  readonly totals: { readonly errors: number; readonly warnings: number };
  readonly problems: readonly { readonly ruleId: string; readonly message: string }[];
}

/** The findings of the linter, whose recommended rules apply, warnings included. */
async function lint(document: string): Promise<Report> {
  // The linter would report its use to its makers, and ask them for a newer version.
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };
  const args = [redocly, 'lint', document, '--extends=recommended', '--format=json', '--max-problems=1000'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env, maxBuffer: 2 ** 26 }).catch(
    (ended: { stdout: string }) => ended,
  );
  return JSON.parse(stdout) as Report;
}

for (const document of ['docs/openapi.json', 'docs/asyncapi.json']) {
  t.test(`${document} passes the linter of Redocly without a warning`, async (t) => {
    const { problems, totals } = await lint(document);
    t.strictSame(
      problems.map(({ ruleId, message }) => `${ruleId}: ${message}`),
      [],
    );
    t.match(totals, { errors: 0, warnings: 0 });
  });
}
