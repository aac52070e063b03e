import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { accessDenialOf } from '../lib/files/access-denial.ts';
import { closestMatch } from '../lib/closest-match.ts';
import { systemErrorOf } from '../lib/errno.ts';
import { messageOf } from '../lib/thrown.ts';
import { ConfigError, type Problem, type Source } from './error.ts';
import { groups, type OptionValue, options } from './option.ts';
import { resolveEntry } from './plugin-entries.ts';
import type { Config } from './schema.ts';

/** Where `loadConfig` reads values. */
export interface ConfigSources {
  /** The folder of config.json, if there is one; `dataDir` is relative to it. */
  readonly dir: string;
  /** Environment variables; those that begin with `COLLAB_` are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Values of flags by option path: `{ port: '8080' }`; undefined for flags that are not set. */
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/** A configuration, and the source of each value that is not a default. */
export interface LoadedConfig {
  readonly config: Config;
  readonly sources: ReadonlyMap<string, Source>;
}

/**
 * Loads the configuration of a folder: defaults, then config.json if it exists, then `COLLAB_*`, then flags. `dataDir`
 * is made absolute.
 *
 * @throws {ConfigError} with every unknown option and every invalid value
 */
export function loadConfig(from: ConfigSources): Config {
  return loadWithSources(from).config;
}

/** As `loadConfig`, and returns the source of each value. */
export function loadWithSources({ dir, env, flags }: ConfigSources): LoadedConfig {
  const reader = new ConfigReader();
  readConfigFile(join(dir, 'config.json'), reader);
  readVariables(env, reader);
  readFlags(flags, reader);
  return reader.finish(dir);
}

/** Collects values and problems from the sources; later sources override earlier ones. */
class ConfigReader {
  readonly #values = new Map<string, OptionValue>();
  readonly #sources = new Map<string, Source>();
  readonly #problems: Problem[] = [];

  reject(path: string, reason: string, source: Source): void {
    this.#problems.push({ path, reason, source });
  }

  /** Sets an option that exists if `value` is valid; `quoted` is what to quote otherwise. */
  take(path: string, value: unknown, quoted: unknown, source: Source): void {
    const option = options.get(path);
    if (option === undefined) return;
    if (!option.check(value)) {
      const fault = option.fault(value);
      if (fault !== null && value !== undefined) return this.reject(path + fault.path, fault.reason, source);
      this.reject(path, `must be ${option.accepts}${option.secret ? '' : `, not ${abbreviated(quoted)}`}`, source);
      return;
    }
    this.#values.set(path, value);
    this.#sources.set(path, source);
  }

  finish(dir: string): LoadedConfig {
    const tree: Record<string, unknown> = {};
    for (const { path, fallback } of options.values()) {
      place(tree, path, this.#values.get(path) ?? fallback);
    }
    const config = tree as Config;
    this.#crossCheck(config);
    if (this.#problems.length > 0) throw new ConfigError(this.#problems);
    return {
      config: {
        ...config,
        dataDir: resolve(dir, config.dataDir),
        plugins: config.plugins.map((entry) => resolveEntry(entry, dir)),
      },
      sources: this.#sources,
    };
  }

  #crossCheck(config: Config): void {
    const { drainSeconds, closeSpreadSeconds } = config.shutdown;
    if (closeSpreadSeconds > drainSeconds) {
      const reason = `must be at most shutdown.drainSeconds (${drainSeconds}), not ${closeSpreadSeconds}`;
      this.reject(
        'shutdown.closeSpreadSeconds',
        reason,
        this.#sourceOf('shutdown.closeSpreadSeconds', 'shutdown.drainSeconds'),
      );
    }
    if (config.turn.urls.length > 0 && config.turn.secret.length === 0) {
      this.reject(
        'turn.secret',
        'must contain the secret of the servers in turn.urls',
        this.#sourceOf('turn.secret', 'turn.urls'),
      );
    }
    if (config.shared.url !== '' && config.store.url === '') {
      this.reject(
        'shared.url',
        'requires store.url: what several nodes share is of use only if they share the store',
        this.#sourceOf('shared.url'),
      );
    }
    const { messagesPerSecond, messageBurst } = config.ws;
    if (messageBurst < messagesPerSecond) {
      const reason = `must be at least ws.messagesPerSecond (${messagesPerSecond}), not ${messageBurst}`;
      this.reject('ws.messageBurst', reason, this.#sourceOf('ws.messageBurst', 'ws.messagesPerSecond'));
    }
  }

  #sourceOf(...paths: readonly string[]): Source {
    const found = paths.map((path) => this.#sources.get(path)).find((source) => source !== undefined);
    return found ?? 'the defaults';
  }
}

function readConfigFile(file: string, reader: ConfigReader): void {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const denial = accessDenialOf(error);
    if (denial !== null)
      reader.reject('', `The file cannot be read. ${denial.message} ${denial.remedy.replace(/\.$/, '')}`, file);
    else if (code !== 'ENOENT')
      reader.reject('', `The file cannot be read: ${systemErrorOf(error)?.name ?? messageOf(error)}`, file);
    return;
  }
  let content: unknown;
  try {
    content = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    reader.reject('', `The file is not valid JSON: ${(error as Error).message}`, file);
    return;
  }
  if (isObject(content)) {
    // Only editors read it.
    const { $schema: _, ...settings } = content;
    readGroup(settings, '', file, reader);
  } else {
    reader.reject('', 'The file must contain a JSON object', file);
  }
}

function readGroup(content: Readonly<Record<string, unknown>>, path: string, file: Source, reader: ConfigReader): void {
  for (const [name, value] of Object.entries(content)) {
    const inner = path === '' ? name : `${path}.${name}`;
    if (options.has(inner)) reader.take(inner, value, value, file);
    else if (!groups.has(inner))
      reader.reject(inner, unknownOption(inner, [...options.keys(), ...groups.keys()]), file);
    else if (isObject(value)) readGroup(value, inner, file, reader);
    else reader.reject(inner, `must be an object of options, not ${abbreviated(value)}`, file);
  }
}

function readVariables(env: ConfigSources['env'], reader: ConfigReader): void {
  const byVariable = new Map([...options.values()].map((option) => [option.variable, option]));
  for (const [variable, text] of Object.entries(env)) {
    if (
      !variable.startsWith('COLLAB_') ||
      text === undefined ||
      text === '' ||
      OTHER_VARIABLES.has(variable) ||
      isServiceLink(variable, text)
    )
      continue;
    const option = byVariable.get(variable);
    const source = `the variable ${variable}`;
    if (option === undefined) reader.reject(variable, unknownOption(variable, byVariable.keys()), source);
    else reader.take(option.path, option.parse(text), text, source);
  }
}

/**
 * Variables that are no options: the folder of config.json, a setting of the command line; and what the programs in
 * examples/ are given, which are often started from the same shell.
 */
const OTHER_VARIABLES: ReadonlySet<string> = new Set([
  'COLLAB_DIR',
  'COLLAB_URL',
  'COLLAB_SECRET_KEY',
  'COLLAB_PUBLISHABLE_KEY',
  'COLLAB_SIGNING_SECRET',
  'COLLAB_SIGNING_KID',
]);

/** Kubernetes sets such variables in every container of a namespace that has a Service named `collab`. */
function isServiceLink(variable: string, text: string): boolean {
  return (
    /^COLLAB_(SERVICE_(HOST|PORT)|PORT_\d+_)/.test(variable) ||
    (variable === 'COLLAB_PORT' && /^(tcp|udp):\/\//.test(text))
  );
}

function readFlags(flags: ConfigSources['flags'], reader: ConfigReader): void {
  for (const [path, text] of Object.entries(flags)) {
    if (text === undefined) continue;
    const option = options.get(path);
    const source = `the flag --${path}`;
    if (option === undefined) reader.reject(path, unknownOption(path, options.keys()), source);
    else reader.take(path, option.parse(text), text, source);
  }
}

function unknownOption(name: string, known: Iterable<string>): string {
  const near = closestMatch(
    name,
    [...known].filter((candidate) => candidate !== ''),
  );
  return near === undefined
    ? 'is not an option; `collab config example` lists all options'
    : `is not an option; did you mean ${near}?`;
}

function place(tree: Record<string, unknown>, path: string, value: OptionValue): void {
  const names = path.split('.');
  const last = names.pop() ?? path;
  let node = tree;
  for (const name of names) {
    const next = (node[name] ?? {}) as Record<string, unknown>;
    node[name] = next;
    node = next;
  }
  node[last] = value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as JSON, shortened to fit a line. */
function abbreviated(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
