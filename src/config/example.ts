import { groups, type Option, options } from './option.ts';

/** Renders config.example.json: every option with its default. */
export function renderExample(): string {
  return `${JSON.stringify(nested(''), null, 2)}\n`;
}

/** The options of a group as an object, in the order of the schema. */
function nested(group: string): Record<string, unknown> {
  const prefix = group === '' ? '' : `${group}.`;
  const names = [...options.keys()].filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length).split('.')[0] ?? '');
  return Object.fromEntries([...new Set(names)].map((name) => [name, options.get(prefix + name)?.fallback ?? nested(prefix + name)]));
}

/** Renders the reference of all options in Markdown: one table for the top level, one per group. */
export function renderReference(): string {
  return [...groups]
    .map(([group, about]) => {
      const members = [...options.values()].filter(({ path }) => groupOf(path) === group);
      const heading = group === '' ? '### Top level' : `### \`${group}\`\n\n${about}`;
      return [heading, '', '| option | default | accepts | what it does |', '|---|---|---|---|', ...members.map(row)].join('\n');
    })
    .join('\n\n');
}

function groupOf(path: string): string {
  return path.split('.').slice(0, -1).join('.');
}

function row({ path, variable, fallback, accepts, description }: Option): string {
  return `| \`${path}\`<br>\`${variable}\` | \`${JSON.stringify(fallback)}\` | ${accepts} | ${description} |`;
}
