import { IsArray, IsObject, IsOptional, IsUnion, type TSchema } from 'typebox';

/**
 * The table of the options of a plugin in Markdown, from the schema of its configuration. Options of objects have
 * paths.
 */
export function renderPluginOptions(schema: TSchema): string {
  const rows = rowsOf(schema, '').map(({ path, needed, text }) => `| \`${path}\` | ${needed} | ${text} |`);
  return ['| option | default | |', '|---|---|---|', ...rows].join('\n');
}

interface Row {
  readonly path: string;
  readonly needed: string;
  readonly text: string;
}

function rowsOf(schema: TSchema, prefix: string): Row[] {
  if (!IsObject(schema)) return [];
  return Object.entries(schema.properties).flatMap(([name, option]: [string, TSchema]) => {
    const path = prefix + name;
    const own: Row = { path, needed: defaultOf(option), text: textOf(option) };
    return [own, ...rowsOf(option, `${path}.`), ...(IsArray(option) ? rowsOf(option.items, `${path}[].`) : [])];
  });
}

function defaultOf(option: TSchema): string {
  const { default: value } = option as { default?: unknown };
  if (value !== undefined) return `\`${JSON.stringify(value)}\``;
  return IsOptional(option) ? '' : 'required';
}

function textOf(option: TSchema): string {
  const { description = '', minimum, maximum } = option as { description?: string; minimum?: number; maximum?: number };
  const values = IsUnion(option)
    ? ` One of ${option.anyOf.map((value) => `\`${String((value as { const?: unknown }).const)}\``).join(', ')}.`
    : '';
  const bounds = minimum === undefined || maximum === undefined ? '' : ` ${minimum} to ${maximum}.`;
  return (description + values + bounds).replaceAll('|', String.raw`\|`);
}
