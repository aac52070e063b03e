import type { Command } from 'commander';
import { version } from '../../../model/version.ts';
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
    printResult(invocationOf(command).json, { version, node: versions.node, platform, arch }, () => `collab ${version}, Node ${versions.node}, ${platform} ${arch}`);
  });
}
