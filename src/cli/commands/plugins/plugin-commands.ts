import type { Command } from 'commander';
import { firstLine } from '../../../lib/thrown.ts';
import type { Config } from '../../../config/schema.ts';
import { appendAuditRecord } from '../../../domain/audit/audit.ts';
import { RecordingStore, type WrittenRecord } from '../../../domain/audit/recording-store.ts';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { pluginKvOf } from '../../../domain/records/partitions.ts';
import { createLogger } from '../../../observability/log.ts';
import type { CommandCall, CommandResult, UsageError } from '../../../plugins/api.ts';
import { type Hooks, setUp } from '../../../plugins/hooks.ts';
import { loadPlugin, type LoadedPlugin } from '../../../plugins/loading/load.ts';
import { localServices } from '../../../plugins/services/local-services.ts';
import type { RunDeliveryFilters } from '../../../plugins/services/plugin-data.ts';
import { PluginError } from '../../../plugins/loading/plugin-error.ts';
import { setupServices } from '../../../plugins/services/setup-services.ts';
import { settingsIn } from '../../../plugins/loading/settings.ts';
import { loadWebPlugins, type WebPlugins } from '../../../plugins/web/web-plugins.ts';
import type { PluginEntry } from '../../../config/plugin-entries.ts';
import type { Transaction } from '../../../ports/store.ts';
import { addCommand, addGroup } from '../../command.ts';
import { Failure, usageFailure } from '../../failure.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { withStore } from '../../shared/open-store.ts';
import { nextSteps, printResult, table } from '../../terminal/output.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';

const STDERR = 2;

/** Adds the commands of a plugin as `<plugin> <command>`. Throws `Failure` if it cannot be loaded. */
export async function registerPluginCommands(program: Command, entry: PluginEntry): Promise<void> {
  const loaded = await loadForHelp(entry);
  addCommands(program, entry, loaded, await setUp(loaded.plugin, setupServices));
}

/** As `registerPluginCommands`, for each plugin that has commands. Those that cannot be loaded are left out. */
export async function registerAllPluginCommands(program: Command, entries: readonly PluginEntry[]): Promise<void> {
  for (const entry of entries) {
    try {
      const loaded = await loadForHelp(entry);
      const hooks = await setUp(loaded.plugin, setupServices);
      if (hooks.commands.length > 0) addCommands(program, entry, loaded, hooks);
    } catch {
      // A call of its commands says what is wrong with it.
    }
  }
}

function addCommands(program: Command, entry: PluginEntry, loaded: LoadedPlugin, hooks: Hooks): void {
  const { name } = loaded.plugin;
  const group = addGroup(program, name, `Commands of the plugin ${name}.`);
  for (const [index, { options }] of hooks.commands.entries()) {
    const command = addCommand(group, options.name, { summary: options.summary, examples: options.examples });
    command.requiredOption('--env <slug>', 'Environment.').option('--yes', 'Do not ask.');
    for (const { flag, description, required } of options.options ?? []) {
      if (required === true) command.requiredOption(flag, description);
      else command.option(flag, description);
    }
    command.action((...given: unknown[]) => run(loaded, entry, index, command, given.slice(0, -2)));
  }
}

async function loadForHelp(entry: PluginEntry): Promise<LoadedPlugin> {
  try {
    return await loadPlugin({ ...entry, enabled: false });
  } catch (error) {
    throw pluginFailure(error);
  }
}

function pluginFailure(error: unknown): Failure {
  return new Failure(firstLine(error), ['`collab plugin check` shows all problems.'], 2);
}

async function run(
  { plugin }: LoadedPlugin,
  entry: PluginEntry,
  index: number,
  command: Command,
  given: readonly unknown[],
): Promise<void> {
  const at = invocationOf(command);
  const options = command.opts<Record<string, string | true | undefined> & { env: string; yes?: true }>();
  const result = await withStore(at, async (ctx, config) => {
    const { id, slug } = await findEnvironment(ctx, options.env);
    const { hooks, settings, close } = await open(
      entry,
      plugin.name,
      ctx,
      config,
      recording(ctx, id, plugin.name, command.name()),
    );
    const call: CommandCall<unknown> = {
      arguments: given.flat().filter((argument): argument is string => typeof argument === 'string'),
      options,
      environment: { id, slug },
      config: settingsIn(settings, slug).config,
      confirm: (warning) => confirmDestruction({ warning, answer: 'yes', yes: options.yes === true }),
    };
    try {
      return await hooks.commands[index]?.run(call);
    } finally {
      await close();
    }
  }).catch((error: unknown) => {
    if (error instanceof PluginError) throw pluginFailure(error);
    if ((error as Error).name !== 'UsageError') throw error;
    const { message, remedies = [] } = error as Error & Partial<Pick<UsageError, 'remedies'>>;
    throw usageFailure(message, ...remedies);
  });
  if (result === undefined) return;
  print(at.json, result);
  if (result.failure !== undefined) throw new Failure(result.failure);
}

/** A plugin with its configuration and the services of this process. */
interface OpenPlugin {
  readonly hooks: Hooks;
  readonly settings: LoadedPlugin['settings'];
  readonly close: () => Promise<void>;
}

/**
 * A context that records the command in the audit log of the environment, in the commit of the first change that it
 * makes.
 */
function recording(ctx: Context, environmentId: string, plugin: string, command: string): Context {
  const record = (tx: Transaction, written: readonly WrittenRecord[]): Promise<void> => {
    const key = written.find(({ partition }) => partition === pluginKvOf(environmentId, plugin))?.key;
    const details = { command, ...(key !== undefined && { key }) };
    return appendAuditRecord(ctx, tx, environmentId, {
      action: 'plugin.command',
      target: { kind: 'plugin', id: plugin },
      details,
    });
  };
  return { ...ctx, store: new RecordingStore(ctx.store, record) };
}

/** @param own the context of the plugin's own services */
async function open(entry: PluginEntry, name: string, ctx: Context, config: Config, own: Context): Promise<OpenPlugin> {
  const { plugin, settings } = await loadPlugin(entry);
  const log = createLogger({ level: config.log.level, name: 'cli', output: STDERR });
  // The filters of all plugins are loaded once a command delivers something, which few do.
  let all: Promise<WebPlugins> | undefined;
  const passes: RunDeliveryFilters = async (...call) =>
    (await (all ??= loadWebPlugins({ ctx, config, log }))).passes(...call);
  const hooks = await setUp(plugin, localServices(name, entry, { ctx: own, config, log, passes }));
  return { hooks, settings, close: async () => (await all)?.close() };
}

function print(json: boolean, { json: document, text, next = [] }: CommandResult): void {
  printResult(json, document, () => {
    const shown =
      typeof text === 'string'
        ? text
        : text.rows.length === 0
          ? 'There are none.'
          : table(
              [...text.header],
              text.rows.map((row) => [...row]),
            );
    return next.length === 0 ? shown : `${shown}${nextSteps(...next)}`;
  });
}
