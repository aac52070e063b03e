import type { Command } from 'commander';
import { type PluginEntry, resolveEntry } from '../../../config/plugin-entries.ts';
import type { Config } from '../../../config/schema.ts';
import { withDefaults } from '../../../plugins/loading/locate.ts';
import type { PluginInfo } from '../../../plugins/thread/messages.ts';
import { addCommand, addGroup } from '../../command.ts';
import { Failure } from '../../failure.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { loadFolderConfig } from '../../shared/open-store.ts';
import { findPluginStates, type PluginState } from '../../../plugins/loading/plugin-states.ts';
import { nextSteps, printResult, table } from '../../terminal/output.ts';
import { createPlugin } from './plugin-new.ts';

/** Adds `plugin list|check|new`. */
export function register(program: Command): void {
  const plugin = addGroup(program, 'plugin', 'Plugins: webhooks, mail, moderation and your own code.');

  addCommand(plugin, 'list', {
    summary: 'List the plugins of the configuration and what they do.',
    details: 'Loads each one in a thread, as the server does when it starts.',
    examples: ['collab plugin list', 'collab plugin list --json'],
  }).action(list);

  addCommand(plugin, 'check [path]', {
    summary: 'Check the plugins of the configuration, or one module, and show their hooks.',
    details:
      'Loads the module, validates its configuration and runs its setup, in a thread. Each may take 30 ' +
      'seconds, as at a start. Names the options of a plugin whose configuration is invalid. Exit code 2 if ' +
      'one is invalid. Changes nothing.',
    examples: ['collab plugin check', 'collab plugin check ./my-plugin/index.js', 'collab plugin check email'],
  }).action(check);

  addCommand(plugin, 'new <name>', {
    summary: 'Write a new plugin to a folder of its name.',
    details: 'It has a filter, an action, types and a test. It depends on this installation of Collab by its path.',
    usesFolder: false,
    examples: ['collab plugin new greeter'],
  }).action(create);
}

async function list(_options: object, command: Command): Promise<void> {
  const { dir, json } = invocationOf(command);
  const config = await loadFolderConfig(dir);
  const found = await findPluginStates(withDefaults(config.plugins), config.publicUrl);
  printResult(json, { items: found.map(viewOf) }, () =>
    table(
      ['name', 'version', 'state', 'environments', 'hooks'],
      found.map((item) => [
        item.info?.name ?? item.entry.use,
        item.info?.version ?? '',
        item.reason ?? item.state,
        environmentsOf(item),
        hooksOf(item.info).join(', '),
      ]),
    ),
  );
}

async function check(path: string | undefined, _options: object, command: Command): Promise<void> {
  const { dir, json } = invocationOf(command);
  const config = await loadFolderConfig(dir);
  const entries = path === undefined ? withDefaults(config.plugins) : [entryOf(path, config)];
  const found = await findPluginStates(entries, config.publicUrl);
  const failures = found.filter(({ state }) => state === 'failed');
  printResult(json, { ok: failures.length === 0, items: found.map(viewOf) }, () =>
    found
      .flatMap((item) =>
        item.info === null
          ? failureLines(item)
          : [`${item.info.name} ${item.info.version}: ok`, ...hooksOf(item.info).map((hook) => `  ${hook}`)],
      )
      .join('\n'),
  );
  if (failures.length > 0)
    throw new Failure(
      `${failures.length} of ${found.length} plugins cannot be loaded.`,
      ['Correct the module or its entry in the option plugins.'],
      2,
    );
}

function failureLines({ reason, options }: PluginState): string[] {
  return [reason ?? '', ...(options.length === 0 ? [] : [`  options: ${options.join(', ')}`])];
}

async function create(name: string, _options: object, command: Command): Promise<void> {
  const { json } = invocationOf(command);
  const folder = await createPlugin(name, process.cwd());
  printResult(
    json,
    { name, folder },
    () =>
      `Wrote the plugin ${name} to ${folder}.${nextSteps(`cd ${name} && npm i && npm test`, `collab plugin check ./${name}/index.js`)}\nThen add {"use": "./${name}/index.js"} to the option plugins in config.json.`,
  );
}

/** The entry of the configuration for this module, or a new one: a path without ./ is one too. */
function entryOf(path: string, { plugins }: Config): PluginEntry {
  const here = resolveEntry({ use: /[./]/.test(path) && !/^[./]/.test(path) ? `./${path}` : path }, process.cwd());
  return plugins.find(({ use }) => use === path || use === here.use) ?? here;
}

function viewOf({ entry, state, info, reason, options }: PluginState): object {
  return {
    use: entry.use,
    name: info?.name ?? null,
    version: info?.version ?? null,
    state,
    reason,
    environments: info === null ? null : environmentStates(info),
    hooks: info?.hooks ?? null,
    ...(options.length > 0 && { options }),
  };
}

function environmentStates({ settings }: PluginInfo): Record<string, boolean> {
  return Object.fromEntries([
    ['*', settings.base.enabled],
    ...[...settings.environments].map(([slug, { enabled }]): [string, boolean] => [slug, enabled]),
  ]);
}

function environmentsOf({ info }: PluginState): string {
  if (info === null) return '';
  const { base, environments } = info.settings;
  const exceptions = [...environments].filter(([, { enabled }]) => enabled !== base.enabled).map(([slug]) => slug);
  if (exceptions.length === 0) return base.enabled ? 'all' : 'none';
  return base.enabled ? `all but ${exceptions.join(', ')}` : exceptions.join(', ');
}

function hooksOf(info: PluginInfo | null): string[] {
  if (info === null) return [];
  const { filters, actions, queues, routes, commands } = info.hooks;
  return [
    ...filters.map(({ name }) => `filter ${name}`),
    ...actions.map(({ type }) => `action ${type}`),
    ...queues.map(({ name }) => `queue ${name}`),
    ...routes.map(({ method, path }) => `route ${method} ${path}`),
    ...commands.map(({ name }) => `command ${name}`),
  ];
}
