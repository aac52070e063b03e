#!/usr/bin/env node
import { unsupportedNodeMessage } from '../src/cli/node-version.ts';

const refusal = unsupportedNodeMessage();

if (refusal === null) {
  const { runCli } = await import('../src/cli/main.ts');
  const exitCode = await runCli(process.argv.slice(2));
  for (const output of [process.stdout, process.stderr])
    await new Promise<void>((resolve) => output.write('', () => resolve()));
  // When the event loop runs empty instead, Node.js closes the LMDB environments of the process, which destroys the
  // mutexes with which another process may be opening them (decision 12).
  process.exit(exitCode);
} else {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 1;
}
