import type { Command, Option } from 'commander';
import { examplesOf } from '../src/cli/command.ts';

/** Renders every command of the program as Markdown: usage, options, examples. */
export function renderCliReference(program: Command): string {
  return leafCommands(program).map(renderCommand).join('\n\n');
}

function leafCommands(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leafCommands);
}

function renderCommand(command: Command): string {
  const path = fullName(command);
  const parts = [`### ${path}`, command.description()];
  const usage = [
    path,
    ...command.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    ),
  ];
  if (command.options.length > 0) usage.push('[options]');
  parts.push(`\`\`\`\n${usage.join(' ')}\n\`\`\``);
  if (command.options.length > 0)
    parts.push(['| option | |', '|---|---|', ...command.options.map(optionRow)].join('\n'));
  parts.push(`\`\`\`sh\n${examplesOf(command).join('\n')}\n\`\`\``);
  return parts.join('\n\n');
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function optionRow({ flags, description, mandatory, defaultValue, argChoices }: Option): string {
  const values = argChoices === undefined ? '' : ` Values: ${argChoices.join(', ')}.`;
  const required = mandatory ? ' Required.' : '';
  const fallback = typeof defaultValue === 'string' ? ` Default: ${defaultValue}.` : '';
  return `| \`${flags.replaceAll('|', '\\|')}\` | ${description.replaceAll('|', '\\|')}${values}${required}${fallback} |`;
}
