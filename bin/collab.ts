#!/usr/bin/env node
// One entry for every process: the primary forks it again, with the role of the child in the environment.
const role = process.env['COLLAB_ROLE'];

if (role === undefined) {
  const { runCli } = await import('../src/cli/main.ts');
  process.exitCode = await runCli(process.argv.slice(2));
} else {
  const { startWorker } = await import('../src/app.ts');
  await startWorker(role);
}
