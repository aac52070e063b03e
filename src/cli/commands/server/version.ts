import type { Command } from 'commander';
import { buildVersion } from '../../build-version.ts';
import { addCommand } from '../../command.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { printResult } from '../../terminal/output.ts';

/** Adds `version`. */
export function register(program: Command): void {
  addCommand(program, 'version', {
    summary: 'Print the version of Collab, and of Node with the platform.',
    usesFolder: false,
    examples: ['collab version', 'collab version --json'],
  }).action((_options: object, command: Command) => {
    const { versions, platform, arch } = process;
    printResult(
      invocationOf(command).json,
      { version: buildVersion, node: versions.node, platform, arch },
      () => `collab ${buildVersion}, Node ${versions.node}, ${platform} ${arch}`,
    );
  });
}
