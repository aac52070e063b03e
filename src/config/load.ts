import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { closestMatch } from '../lib/closest-match.ts';
import { ConfigError, type Problem, type Source } from './error.ts';
import { groups, type OptionValue, options } from './option.ts';
import type { Config } from './schema.ts';

export interface ConfigSources {
  /** The folder that may hold config.json; `dataDir` is relative to it. */
  readonly dir: string;
  /** Environment variables; those that begin with `COLLAB_` are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Texts of flags by the path of their option: `{ port: '8080' }`; undefined for a flag not given. */
  readonly flags: Readonly<Record<string, string | undefined>>;
}

/** A configuration, and where each value that is not a default came from. */
export interface LoadedConfig {
  readonly config: Config;
  readonly sources: ReadonlyMap<string, Source>;
}

/**
 * The configuration of a folder: defaults, then config.json where there is one, then `COLLAB_*`, then flags.
 * `dataDir` comes out absolute.
 *
 * @throws {ConfigError} with every unknown option and every value out of bounds
 */
export function loadConfig(from: ConfigSources): Config {
  return loadWithSources(from).config;
}

/** As `loadConfig`, and says where each value came from. */
export function loadWithSources({ dir, env, flags }: ConfigSources): LoadedConfig {
  const reading = new Reading();
  readConfigFile(join(dir, 'config.json'), reading);
  readVariables(env, reading);
  readFlags(flags, reading);
  return reading.finish(dir);
}

/** Gathers values and problems from the sources, each later source over the earlier. */
class Reading {
  readonly #values = new Map<string, OptionValue>();
  readonly #sources = new Map<string, Source>();
  readonly #problems: Problem[] = [];

  reject(path: string, reason: string, source: Source): void {
    this.#problems.push({ path, reason, source });
  }

  /** Takes a value of an existing option; `shown` is what was written, for the refusal. */
  take(path: string, value: unknown, shown: unknown, source: Source): void {
    const option = options.get(path);
    if (option === undefined) return;
    if (!option.check(value)) {
      this.reject(path, `must be ${option.accepts}${option.secret ? '' : `, not ${abbreviated(shown)}`}`, source);
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
    return { config: { ...config, dataDir: resolve(dir, config.dataDir) }, sources: this.#sources };
  }

  #crossCheck(config: Config): void {
    const { drainSeconds, closeSpreadSeconds } = config.shutdown;
    if (closeSpreadSeconds > drainSeconds) {
      const reason = `must be at most shutdown.drainSeconds (${drainSeconds}), not ${closeSpreadSeconds}`;
      this.reject('shutdown.closeSpreadSeconds', reason, this.#sourceOf('shutdown.closeSpreadSeconds', 'shutdown.drainSeconds'));
    }
    if (config.turn.urls.length > 0 && config.turn.secret.length === 0) {
      this.reject('turn.secret', 'must hold the secret of the servers in turn.urls', this.#sourceOf('turn.secret', 'turn.urls'));
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

function readConfigFile(file: string, reading: Reading): void {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ENOENT') reading.reject('', `The file cannot be read: ${code ?? String(error)}`, file);
    return;
  }
  let content: unknown;
  try {
    content = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    reading.reject('', `The file is not valid JSON: ${(error as Error).message}`, file);
    return;
  }
  if (isObject(content)) readGroup(content, '', file, reading);
  else reading.reject('', 'The file must hold a JSON object', file);
}

function readGroup(content: Readonly<Record<string, unknown>>, path: string, file: Source, reading: Reading): void {
  for (const [name, value] of Object.entries(content)) {
    const inner = path === '' ? name : `${path}.${name}`;
    if (options.has(inner)) reading.take(inner, value, value, file);
    else if (!groups.has(inner)) reading.reject(inner, unknownOption(inner, [...options.keys(), ...groups.keys()]), file);
    else if (isObject(value)) readGroup(value, inner, file, reading);
    else reading.reject(inner, `must be an object of options, not ${abbreviated(value)}`, file);
  }
}

function readVariables(env: ConfigSources['env'], reading: Reading): void {
  const byVariable = new Map([...options.values()].map((option) => [option.variable, option]));
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith('COLLAB_') || text === undefined || text === '' || isServiceLink(variable, text)) continue;
    const option = byVariable.get(variable);
    const source = `the variable ${variable}`;
    if (option === undefined) reading.reject(variable, unknownOption(variable, byVariable.keys()), source);
    else reading.take(option.path, option.parse(text), text, source);
  }
}

/** Kubernetes puts such variables into every container beside a Service that is named `collab`. */
function isServiceLink(variable: string, text: string): boolean {
  return /^COLLAB_(SERVICE_(HOST|PORT)|PORT_\d+_)/.test(variable) || (variable === 'COLLAB_PORT' && /^(tcp|udp):\/\//.test(text));
}

function readFlags(flags: ConfigSources['flags'], reading: Reading): void {
  for (const [path, text] of Object.entries(flags)) {
    if (text === undefined) continue;
    const option = options.get(path);
    const source = `the flag --${path}`;
    if (option === undefined) reading.reject(path, unknownOption(path, options.keys()), source);
    else reading.take(path, option.parse(text), text, source);
  }
}

function unknownOption(name: string, known: Iterable<string>): string {
  const near = closestMatch(name, [...known].filter((candidate) => candidate !== ''));
  return near === undefined ? 'is no option; `collab config example` lists them all' : `is no option; did you mean ${near}?`;
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

/** A value as JSON, short enough for a line of log. */
function abbreviated(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
