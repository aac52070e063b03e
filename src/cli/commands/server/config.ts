import type { Command } from 'commander';
import { exists } from '../../../lib/files/exists.ts';
import { ConfigError } from '../../../config/error.ts';
import { renderExample, renderSchema } from '../../../config/example.ts';
import { loadWithSources } from '../../../config/load.ts';
import { options, type OptionValue } from '../../../config/option.ts';
import type { Config } from '../../../config/schema.ts';
import { addCommand, addGroup } from '../../command.ts';
import { configFile } from '../../shared/folder.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { nextSteps, print, printResult, table } from '../../terminal/output.ts';

/** Adds `config check|example|schema`. */
export function register(program: Command): void {
  const config = addGroup(program, 'config', 'The configuration: config.json, then COLLAB_* variables, then flags.');

  addCommand(config, 'check', {
    summary: 'Check the configuration and show the resulting values.',
    details:
      'Exit code 2 if it is invalid. Reads config.json and the COLLAB_* variables of this shell; changes nothing.',
    examples: ['collab config check', 'collab config check --dir /srv/collab --json'],
  }).action(check);

  addCommand(config, 'example', {
    summary: 'Print a config.json with every option and its default.',
    examples: ['collab config example > config.json'],
  }).action(() => print(renderExample().trimEnd()));

  addCommand(config, 'schema', {
    summary: 'Print the JSON Schema of config.json, for editors.',
    details: 'A new folder has it beside its config.json, which names it as $schema. Write it again after an upgrade.',
    examples: ['collab config schema > config.schema.json'],
  }).action(() => print(renderSchema().trimEnd()));
}

function check(_options: object, command: Command): void {
  const { dir, json } = invocationOf(command);
  try {
    if (!exists(dir))
      throw new ConfigError([
        { path: '', reason: 'The folder does not exist. Name the folder of config.json with --dir', source: dir },
      ]);
    const { config, sources } = loadWithSources({ dir, env: process.env, flags: {} });
    const file = exists(configFile(dir)) ? configFile(dir) : null;
    printResult(
      json,
      { valid: true, file, config: withoutSecrets(config), sources: Object.fromEntries(sources) },
      () => {
        const about =
          file === null
            ? `There is no ${configFile(dir)}. These are the values without it.`
            : 'The configuration is valid.';
        const rows = [...options.values()].map(({ path, secret }) => [
          path,
          secret && sources.has(path) ? HIDDEN : formatOption(valueAt(config, path)),
          sources.get(path) ?? 'default',
        ]);
        return `${about}\n\n${table(['option', 'value', 'from'], rows)}${nextSteps('Restart a running server to apply changes.')}`;
      },
    );
  } catch (error) {
    if (json && error instanceof ConfigError)
      print(JSON.stringify({ valid: false, file: configFile(dir), problems: error.problems }));
    throw error;
  }
}

const HIDDEN = '(hidden)';

/** A copy of the configuration with its secrets hidden. */
function withoutSecrets(config: Config): object {
  const copy = structuredClone(config) as object;
  for (const { path, secret } of options.values()) {
    if (!secret) continue;
    const names = path.split('.');
    const last = names.pop() ?? path;
    const group = names.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], copy) as Record<
      string,
      unknown
    >;
    const value = group[last];
    group[last] = Array.isArray(value) ? value.map(() => HIDDEN) : value === '' ? '' : HIDDEN;
  }
  return copy;
}

function valueAt(config: object, path: string): OptionValue {
  return path
    .split('.')
    .reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], config) as OptionValue;
}

function formatOption(value: OptionValue): string {
  return typeof value === 'object'
    ? value.map((item) => (typeof item === 'string' ? item : item.use)).join(', ') || 'none'
    : String(value);
}
