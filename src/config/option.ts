import type { TSchema } from 'typebox';
import { Networks } from '../lib/addresses/networks.ts';
import { entriesFault, type EntryFault, parseEntries, type PluginEntry } from './plugin-entries.ts';
import { ConfigSchema } from './schema.ts';

/** The value of an option. */
export type OptionValue = string | number | boolean | readonly string[] | readonly PluginEntry[];

/** The part of JSON Schema that options use. */
interface Rule {
  readonly type?: string;
  readonly const?: string | number | boolean;
  readonly anyOf?: readonly Rule[];
  readonly items?: Rule;
  readonly format?: string;
  readonly pattern?: string;
  readonly title?: string;
  readonly writeOnly?: boolean;
  readonly properties?: Readonly<Record<string, Rule>>;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly default?: OptionValue;
  readonly description?: string;
}

/** One option, derived from the schema. */
export interface Option {
  /** Its path in config.json: `rateLimit.perMinute`. */
  readonly path: string;
  /** Its environment variable: `COLLAB_RATE_LIMIT_PER_MINUTE`. */
  readonly variable: string;
  readonly description: string;
  readonly fallback: OptionValue;
  /** Whether its value must never be shown. */
  readonly secret: boolean;
  /** The accepted values, to follow "must be": `a whole number from 0 to 65535`. */
  readonly accepts: string;
  /** Whether a value read from JSON is valid. */
  readonly check: (value: unknown) => value is OptionValue;
  /** The part of an invalid value that is at fault, if the option is a list of objects; null otherwise. */
  readonly fault: (value: unknown) => EntryFault | null;
  /** Parses the text of a variable or flag; undefined if it is not valid. */
  readonly parse: (text: string) => OptionValue | undefined;
}

/** The format of the list of plugins. */
const PLUGINS = 'plugins';

/** The groups of options by path ('' is the top level), with their descriptions. */
export const groups = new Map<string, string>();

/** Every option by path, in the order of the schema. */
export const options: ReadonlyMap<string, Option> = new Map(
  collect(ConfigSchema, '').map((option) => [option.path, option]),
);

function collect(schema: TSchema, path: string): Option[] {
  const rule = schema as Rule;
  if (rule.properties === undefined) return [describe(rule, path)];
  groups.set(path, rule.description ?? '');
  const prefix = path === '' ? '' : `${path}.`;
  return Object.entries(rule.properties).flatMap(([name, inner]) => collect(inner as TSchema, prefix + name));
}

function describe(rule: Rule, path: string): Option {
  if (rule.default === undefined) throw new Error(`option ${path} has no default`);
  return {
    path,
    variable: variableName(path),
    description: rule.description ?? '',
    fallback: rule.default,
    secret: rule.writeOnly === true,
    accepts: accepts(rule),
    check: (value): value is OptionValue => fits(rule, value),
    fault: (value) => (rule.format === PLUGINS ? entriesFault(value) : null),
    parse: (text) => parse(rule, text),
  };
}

/** The environment variable of an option's path. */
function variableName(path: string): string {
  return `COLLAB_${path
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('.', '_')
    .toUpperCase()}`;
}

function accepts(rule: Rule): string {
  if (rule.format === PLUGINS) return 'a list of plugins, or names separated by commas';
  if (rule.anyOf !== undefined) return listed(rule.anyOf.map(accepts));
  if (rule.const !== undefined) return String(rule.const);
  if (rule.type === 'integer') return `a whole number from ${rule.minimum} to ${rule.maximum}`;
  if (rule.type === 'boolean') return 'true or false';
  if (rule.type === 'array')
    return rule.items?.format === 'cidr'
      ? 'a list of networks such as 10.0.0.0/8 or fd00::/8'
      : `a list of ${rule.items?.description ?? 'strings'}`;
  if (rule.title !== undefined) return rule.title;
  return `a string of ${rule.minLength} to ${rule.maxLength} characters`;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function fits(rule: Rule, value: unknown): boolean {
  if (rule.format === PLUGINS) return entriesFault(value) === null;
  if (rule.anyOf !== undefined) return rule.anyOf.some((choice) => fits(choice, value));
  if (rule.const !== undefined) return value === rule.const;
  if (rule.type === 'integer')
    return Number.isSafeInteger(value) && between(rule.minimum, rule.maximum, value as number);
  if (rule.type === 'boolean') return typeof value === 'boolean';
  if (rule.type === 'array')
    return Array.isArray(value) && value.every((item) => rule.items !== undefined && fits(rule.items, item));
  if (typeof value !== 'string') return false;
  if (rule.pattern !== undefined) return new RegExp(rule.pattern).test(value);
  return rule.format === 'cidr' ? isNetwork(value) : between(rule.minLength, rule.maxLength, value.length);
}

function between(low: number | undefined, high: number | undefined, value: number): boolean {
  return value >= (low ?? -Infinity) && value <= (high ?? Infinity);
}

function isNetwork(text: string): boolean {
  try {
    new Networks([text]);
    return true;
  } catch {
    return false;
  }
}

function parse(rule: Rule, text: string): OptionValue | undefined {
  if (rule.format === PLUGINS) return parseEntries(text);
  const candidates: OptionValue[] = [text];
  if (/^-?\d+$/.test(text)) candidates.unshift(Number(text));
  if (text === 'true' || text === 'false') candidates.unshift(text === 'true');
  candidates.unshift(
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  );
  return candidates.find((candidate) => fits(rule, candidate));
}
