import type { Command, Option } from 'commander';

/** The words that can follow some words of a command line. */
export interface CompletionNode {
  /** The words before, without options: `env create`; empty for the program itself. */
  readonly path: string;
  /** Subcommands with their summaries, or the values of the argument. */
  readonly commands: readonly Described[];
  /** Long flags with their descriptions, those of every command among them. */
  readonly options: readonly CompletionOption[];
}

/** A word with a description in one line. */
export interface Described {
  readonly word: string;
  readonly about: string;
}

/** A flag that can be completed. */
export interface CompletionOption extends Described {
  /** The completions of its value: these values, paths, or nothing; null for a flag without a value. */
  readonly value: readonly string[] | 'path' | 'other' | null;
}

/** Options and arguments that are paths, by the name of their value. */
const PATHS: ReadonlySet<string> = new Set(['folder', 'file', 'backup', 'path']);

/** The program and all its commands, groups before their members. */
export function completionTree(program: Command): CompletionNode[] {
  const common = [...program.options, program.createOption('--help', 'Show help.')]
    .filter(({ long }) => long !== '--version')
    .map(optionOf);
  const walk = (command: Command, path: string): CompletionNode[] => {
    const own = command === program ? [] : command.options.map(optionOf);
    const values = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((word) => ({ word, about: oneLine(description) })),
    );
    const commands = [
      ...command.commands.map((inner) => ({ word: inner.name(), about: oneLine(inner.summary()) })),
      ...values,
    ];
    const inner = command.commands.flatMap((child) =>
      walk(child, path === '' ? child.name() : `${path} ${child.name()}`),
    );
    return [{ path, commands, options: [...own, ...common] }, ...inner];
  };
  return walk(program, '');
}

function optionOf({ long, description, flags, argChoices }: Option): CompletionOption {
  const [, value] = /<(.+)>/.exec(flags) ?? [];
  return {
    word: long ?? '',
    about: oneLine(description),
    value: value === undefined ? null : argChoices !== undefined ? argChoices : PATHS.has(value) ? 'path' : 'other',
  };
}

/** The first sentence, without characters that have a meaning in a quoted text of a shell. */
function oneLine(text: string): string {
  return (/^.*?\.(?= |$)/s.exec(text)?.[0] ?? text).replace(/\.$/, '').replaceAll(/['"`\\$\n]/g, '');
}
