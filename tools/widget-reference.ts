import {
  attributes,
  customProperties,
  type Documented,
  events,
  methods,
  parts,
  properties,
} from '../src/widget/interface.ts';

/** Renders the interface of `<collab-comments>` as Markdown tables. */
export function renderWidgetReference(): string {
  const sections: readonly (readonly [title: string, rows: readonly Documented[]])[] = [
    ['Attributes', attributes],
    ['Properties', properties],
    ['Methods', methods],
    ['Events', events],
    ['Custom properties', customProperties],
    ['Parts', parts],
  ];
  return sections.map(([title, rows]) => `### ${title}\n\n${table(rows)}`).join('\n\n');
}

function table(rows: readonly Documented[]): string {
  const typed = rows.some(({ type }) => type !== undefined);
  const head = typed ? ['| | | |', '|---|---|---|'] : ['| | |', '|---|---|'];
  return [
    ...head,
    ...rows.map(
      ({ name, type = '', meaning }) =>
        `| \`${name}\` | ${typed ? `${type.replaceAll('|', '\\|')} | ` : ''}${meaning} |`,
    ),
  ].join('\n');
}
