#!/usr/bin/env node
import { refusalOfNode } from '../src/cli/node-version.ts';

// One entry for every process: the primary forks it again, with the role of the child in the environment.
const role = process.env['COLLAB_ROLE'];
const refusal = refusalOfNode();

if (refusal !== null) {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 1;
} else if (role === undefined) {
  const { runCli } = await import('../src/cli/main.ts');
  process.exitCode = await runCli(process.argv.slice(2));
} else {
  const { startWorker } = await import('../src/app.ts');
  await startWorker(role);
}
