/** The `paths` of an OpenAPI document: what each method, in small letters, does on a path. */
export type Routes = Readonly<Record<string, Readonly<Record<string, { readonly summary?: string }>>>>;

/** A method of the client, as its source declares it. */
interface Method {
  /** With the names of its parameters: `get(roomId, { comments? })`. */
  readonly call: string;
  readonly returns: string;
  /** `GET /rooms/:roomId`, or empty if the caller names it. */
  readonly request: string;
  readonly meaning: string;
}

const RESOURCE = /^ {2}readonly (\w+) = \{\n([^]*?)^ {2}\};$/gm;
/** A method at this indent, with its docstring, up to the `(` of its parameters. Not the constructor. */
const METHOD = (indent: string): RegExp => {
  const docstring = String.raw`(?:^${indent}/\*\*((?:(?!\*/)[^])*)\*/\n)?`;
  const name = String.raw`^${indent}(?!constructor)(?:async )?(\w+)(?:<\w+>)?(?:: (?:async )?)?\(`;
  return new RegExp(docstring + name, 'gm');
};
const REQUEST = /#(?:list|call|one)(?:<[^(]*>)?\((?:'[a-z]\w*', )?(?:'([A-Z]+)', )?(?:at)?[`'](\/[^`']*)/;
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '{': '}', '[': ']', '<': '>' };

/**
 * Renders the methods of `CollabClient` as Markdown: a table for each resource, and one for what belongs to none.
 *
 * @param source the text of src/client/rest/client.ts, in its layout
 * @throws {Error} if a method sends a request that is no route
 */
export function renderSdkReference(source: string, routes: Routes): string {
  const resources = [...source.matchAll(RESOURCE)].map(([, name = '', text = '']) =>
    section(`\`${name}\``, methodsOf(text, '    ', source, routes)),
  );
  const rest = source.slice(source.indexOf('export class CollabClient')).replaceAll(RESOURCE, '');
  return [...resources, section('Without a resource', methodsOf(rest, '  ', source, routes))].join('\n\n');
}

function section(title: string, methods: readonly Method[]): string {
  const rows = methods.map(({ call, request, returns, meaning }) => {
    const cells = [call, request, returns].map(code);
    return `| ${cells.join(' | ')} | ${meaning} |`;
  });
  return [`#### ${title}`, '', '| Method | Request | Returns | |', '|---|---|---|---|', ...rows].join('\n');
}

function code(text: string): string {
  return text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``;
}

function methodsOf(text: string, indent: string, source: string, routes: Routes): Method[] {
  const found = [...text.matchAll(METHOD(indent))];
  return found.map((match, index) => {
    const open = match.index + match[0].length - 1;
    const close = closingOf(text, open);
    const [, type = ''] = /^: (.+?)(?: =>.*| \{)$/m.exec(text.slice(close + 1)) ?? [];
    const request = requestOf(text.slice(close, found[index + 1]?.index));
    const summary = summaryOf(request, routes);
    const meaning = match[1] === undefined ? `${summary}.` : firstParagraph(match[1]);
    const inBrackets = text.slice(open + 1, close).replaceAll(/\s+/g, ' ');
    const parameters = parts(inBrackets, ',').flatMap((each) => parameterOf(each, source));
    return { call: `${match[2]}(${parameters.join(', ')})`, returns: typeOf(type, source), request, meaning };
  });
}

function firstParagraph(docstring: string): string {
  const [text = ''] = docstring.split(/\n *\* *\n/);
  return text.replaceAll(/\s*\n\s*\* ?/g, ' ').trim();
}

/** `GET /rooms/:roomId` of the body of a method; empty if it sends none of its own. */
function requestOf(body: string): string {
  const [, method = 'GET', path = ''] = REQUEST.exec(body) ?? [];
  return path === '' ? '' : `${method} ${path.replaceAll(/\$\{(\w+)\}/g, ':$1')}`;
}

function summaryOf(request: string, routes: Routes): string {
  if (request === '') return '';
  const [method = '', path = ''] = request.split(' ');
  const summary = routes[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]?.summary;
  if (summary === undefined) throw new Error(`the SDK sends ${request}, which docs/openapi.json does not have`);
  return summary;
}

/** The name of a parameter, or the names in it: `{ comments? }`. None for the options that every call has. */
function parameterOf(text: string, source: string): string[] {
  const [, name = '', mark = '', type = ''] = /^(\{.*?\}|\w+)(\??): (.*?)(?: = \{\})?$/.exec(text) ?? [];
  if (type === 'CallOptions') return [];
  const optional = mark !== '' || text.endsWith(' = {}') ? '?' : '';
  const fieldsOf = (each: string): unknown[] => Array.from(each.matchAll(/[{;] (\w+\??): /g), ([, field]) => field);
  const choices = parts(typeOf(type, source), '|').map(fieldsOf);
  if (choices.some((fields) => fields.length === 0)) return [name + optional];
  return [choices.map((fields) => `{ ${fields.join(', ')} }`).join(' | ')];
}

/** A type without `readonly`, and without the names that the module keeps for itself. */
function typeOf(type: string, source: string): string {
  const declarationOf = (name: string): RegExp => new RegExp(String.raw`^type ${name} = (.*\{.*);$`, 'm');
  const expanded = type.replaceAll(/\b[A-Z]\w+\b/g, (name) => declarationOf(name).exec(source)?.[1] ?? name);
  return expanded.replaceAll(/\breadonly /g, '');
}

/** The position of the bracket that closes the one at `open`; the end of the text if none does. */
function closingOf(text: string, open: number): number {
  let at = open + 1;
  while (at < text.length && text[at] !== CLOSING[text[open] ?? '']) at = after(text, at);
  return at;
}

/** The position after the character at `at`, or after what it opens. */
function after(text: string, at: number): number {
  return Object.hasOwn(CLOSING, text[at] ?? '') ? closingOf(text, at) + 1 : at + 1;
}

/** What a separator divides outside of brackets. */
function parts(text: string, separator: string): string[] {
  const found = [''];
  for (let at = 0; at < text.length;) {
    const end = after(text, at);
    if (text[at] === separator) found.push('');
    else found.push(`${found.pop()}${text.slice(at, end)}`);
    at = end;
  }
  return found.map((each) => each.trim()).filter((each) => each !== '');
}
