import { Argument, type Command } from 'commander';
import { addCommand } from '../command.ts';
import { usageFailure } from '../failure.ts';
import { print } from '../terminal/output.ts';
import { completionScript, type Shell, shells } from './scripts.ts';
import { completionTree } from './tree.ts';

/** Adds `completion`. The program must have all its commands when it is called. */
export function register(program: Command): void {
  addCommand(program, 'completion', {
    summary: 'Print a script that completes commands and options in bash, zsh or fish.',
    details:
      'It knows the commands of the plugins that ship with Collab, and of those in the config.json of the ' +
      'folder: write it again after adding one. ' +
      'bash: write it to ~/.local/share/bash-completion/completions/collab. zsh: write it to a file _collab in a folder of $fpath. ' +
      'fish: write it to ~/.config/fish/completions/collab.fish. Or, in bash and zsh, for one session: source <(collab completion bash).',
    usesFolder: false,
    examples: [
      'collab completion bash > ~/.local/share/bash-completion/completions/collab',
      'collab completion zsh > ~/.zfunc/_collab',
      'collab completion fish > ~/.config/fish/completions/collab.fish',
    ],
  })
    .addArgument(new Argument('<shell>', 'The shell that runs the script.').choices(shells).argParser(shellNamed))
    .action((shell: Shell) => print(completionScript(shell, completionTree(program)).trimEnd()));
}

function shellNamed(name: string): Shell {
  const shell = shells.find((candidate) => candidate === name);
  if (shell === undefined) throw usageFailure(`<shell> must be one of ${shells.join(', ')}, not "${name}".`);
  return shell;
}
