import type { TSchema } from 'typebox';
import { Default } from 'typebox/value';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { InputSchema, validate } from '../../domain/input/validate.ts';
import { closestMatch } from '../../lib/closest-match.ts';
import { resolvePaths } from './config-paths.ts';
import { PluginError } from './plugin-error.ts';

/** How a plugin runs in one environment. */
export interface EnvironmentSettings {
  readonly enabled: boolean;
  /** The priority of its filters, instead of their own. */
  readonly priority: number | undefined;
  /** Its configuration, valid and with defaults. */
  readonly config: unknown;
}

/** How a plugin runs, by environment. */
export interface PluginSettings {
  /** Where the configuration says nothing about an environment. */
  readonly base: EnvironmentSettings;
  readonly environments: ReadonlyMap<string, EnvironmentSettings>;
}

/** The settings of a plugin in the environment with this slug. */
export function settingsIn({ base, environments }: PluginSettings, slug: string): EnvironmentSettings {
  return environments.get(slug) ?? base;
}

/**
 * Reads the settings of an entry, with the defaults of the schema of the plugin and absolute paths. Throws
 * `PluginError` for an invalid option.
 */
export function readSettings(name: string, schema: TSchema, entry: PluginEntry): PluginSettings {
  const { enabled = true, priority, config = {}, folder = process.cwd() } = entry;
  const check = (given: Readonly<Record<string, unknown>>, where: string, needed: boolean): unknown =>
    resolvePaths(schema, checkConfig(name, schema, given, where, needed), folder);
  const base = { enabled, priority, config: check(config, 'config', enabled) };
  const environments = Object.entries(entry.environments ?? {}).map(([slug, own]): [string, EnvironmentSettings] => {
    const on = own.enabled ?? enabled;
    return [
      slug,
      {
        enabled: on,
        priority: own.priority ?? priority,
        config: check({ ...config, ...own.config }, `environments.${slug}.config`, on),
      },
    ];
  });
  return { base, environments: new Map(environments) };
}

/**
 * @param needed whether the plugin is enabled with this configuration: a plugin that is not may lack required options
 */
function checkConfig(
  name: string,
  schema: TSchema,
  given: Readonly<Record<string, unknown>>,
  where: string,
  needed: boolean,
): unknown {
  const known = Object.keys((schema as { properties?: object }).properties ?? {});
  const unknown = Object.keys(given).find((option) => !known.includes(option));
  if (unknown !== undefined) {
    const near = closestMatch(unknown, known);
    throw new PluginError(
      name,
      `${where}.${unknown} is not an option${near === undefined ? `; the options are ${known.join(', ') || 'none'}` : `; did you mean ${near}?`}`,
      optionsOf(schema),
    );
  }
  const config: unknown = Default(schema, structuredClone(given));
  if (!needed) return config;
  try {
    return validate(new InputSchema(schema, { allowsMalformedText: true }), config, where);
  } catch (error) {
    throw new PluginError(name, (error as Error).message, optionsOf(schema));
  }
}

/** The options of a plugin by its schema; those without which it cannot run are marked. */
function optionsOf(schema: TSchema): string[] {
  const { properties = {}, required = [] } = schema as {
    properties?: Readonly<Record<string, { default?: unknown }>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, option]) =>
    required.includes(name) && option.default === undefined ? `${name} (required)` : name,
  );
}
