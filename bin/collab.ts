#!/usr/bin/env node
import { unsupportedNodeMessage } from '../src/cli/node-version.ts';

const refusal = unsupportedNodeMessage();

if (refusal === null) {
  const { runCli } = await import('../src/cli/main.ts');
  process.exitCode = await runCli(process.argv.slice(2));
} else {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 1;
}
