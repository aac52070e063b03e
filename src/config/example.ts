import { groups, type Option, options } from './option.ts';
import { ConfigSchema } from './schema.ts';

/** Renders config.example.json: every option with its default. */
export function renderExample(): string {
  return `${JSON.stringify(nested(''), null, 2)}\n`;
}

/**
 * Renders config.schema.json, by which editors complete and check a config.json: all options are optional, and
 * `$schema` may name it.
 */
export function renderSchema(): string {
  const schema = optional(JSON.parse(JSON.stringify(ConfigSchema)) as JsonSchema);
  const properties = {
    $schema: { type: 'string', description: 'The path or address of this schema, for editors.' },
    ...schema.properties,
  };
  return `${JSON.stringify({ $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Configuration of Collab', ...schema, properties }, null, 2)}\n`;
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

/** A group without required options; an option as it is. */
function optional(schema: JsonSchema): JsonSchema {
  const { properties } = schema;
  if (properties === undefined) return schema;
  const rest = Object.entries(schema).filter(([name]) => name !== 'required');
  return {
    ...Object.fromEntries(rest),
    properties: Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, optional(inner)])),
  };
}

/** The options of a group as an object, in the order of the schema. */
function nested(group: string): Record<string, unknown> {
  const prefix = group === '' ? '' : `${group}.`;
  const names = [...options.keys()]
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length).split('.')[0] ?? '');
  return Object.fromEntries(
    [...new Set(names)].map((name) => [name, options.get(prefix + name)?.fallback ?? nested(prefix + name)]),
  );
}

/** Renders the reference of all options in Markdown: one table for the top level, one per group. */
export function renderReference(): string {
  return [...groups]
    .map(([group, about]) => {
      const members = [...options.values()].filter(({ path }) => groupOf(path) === group);
      const heading = group === '' ? '### Top level' : `### \`${group}\`\n\n${about}`;
      return [
        heading,
        '',
        '| option | default | accepts | what it does |',
        '|---|---|---|---|',
        ...members.map(row),
      ].join('\n');
    })
    .join('\n\n');
}

function groupOf(path: string): string {
  return path.split('.').slice(0, -1).join('.');
}

function row({ path, variable, fallback, accepts, description }: Option): string {
  return `| \`${path}\`<br>\`${variable}\` | \`${JSON.stringify(fallback)}\` | ${accepts} | ${description} |`;
}
