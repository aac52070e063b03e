import { withoutReferences } from './references.ts';

/** swagger-ui-dist, which the page has loaded before. */
declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => void;

/** Of the page. */
declare const location: { readonly href: string };

/** A response that the viewer has received. */
interface Loaded {
  readonly text: string;
}

interface Parameter {
  readonly required?: boolean;
  readonly schema?: { readonly type?: string; readonly description?: string };
  description?: string;
  example?: unknown;
}

let isLoaded = false;

/** The API beside this page, which a proxy may serve below a path of its own. */
const api = new URL('api/v1', location.href).href;

SwaggerUIBundle({
  url: `${api}/openapi.json`,
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  // Nothing leaves for another host, and no credential outlives the page.
  validatorUrl: null,
  plugins: [() => ({ fn: { resolveSubtree } })],
  persistAuthorization: false,
  responseInterceptor: (response: Loaded): Loaded => {
    // The first is the document.
    if (isLoaded) return response;
    isLoaded = true;
    return { ...response, text: withEmptyParameters(response.text) };
  },
});

/**
 * In place of the viewer's own function for a part of the document, which takes seconds of processor time for the first
 * and about one for each operation.
 */
function resolveSubtree(
  document: Readonly<Record<string, unknown>>,
  path: readonly string[],
  { baseDoc }: { readonly baseDoc: string },
): Promise<unknown> {
  return Promise.resolve({ spec: withoutReferences(document, path, baseDoc), errors: [] });
}

/**
 * The document for this place, with examples of optional parameters in their descriptions. The viewer would send them:
 * every filter of a list at once, and the same Idempotency-Key again and again.
 */
function withEmptyParameters(text: string): string {
  const reference = JSON.parse(text) as {
    servers: { url: string }[];
    paths: Record<string, Record<string, { parameters?: Parameter[] }>>;
  };
  reference.servers = [{ url: api }];
  const all = Object.values(reference.paths)
    .flatMap((operations) => Object.values(operations))
    .flatMap(({ parameters = [] }) => parameters);
  for (const parameter of all) if (parameter.required !== true) empty(parameter);
  return JSON.stringify(reference);
}

function empty(parameter: Parameter): void {
  const { example, schema, description = schema?.description ?? '' } = parameter;
  const isMap = schema?.type === 'object';
  parameter.description = example === undefined ? description : `${description} Example: \`${textOf(example)}\``;
  delete parameter.example;
  // Otherwise the viewer makes one up.
  if (isMap) parameter.example = {};
}

function textOf(example: unknown): string {
  if (typeof example !== 'object' || example === null) return String(example as string | number | boolean);
  return Object.entries(example)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join('&');
}
