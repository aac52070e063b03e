/** swagger-ui-dist, which the page has loaded before. */
declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => void;

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

SwaggerUIBundle({
  url: '/api/v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  // Nothing leaves for another host, and no credential outlives the page.
  validatorUrl: null,
  persistAuthorization: false,
  responseInterceptor: (response: Loaded): Loaded => {
    // The first is the document.
    if (isLoaded) return response;
    isLoaded = true;
    return { ...response, text: withEmptyParameters(response.text) };
  },
});

/**
 * The document with examples of optional parameters in their descriptions. The viewer would send them: every filter of a
 * list at once, and the same Idempotency-Key again and again.
 */
function withEmptyParameters(text: string): string {
  const document = JSON.parse(text) as { paths: Record<string, Record<string, { parameters?: Parameter[] }>> };
  const all = Object.values(document.paths).flatMap((operations) => Object.values(operations)).flatMap(({ parameters = [] }) => parameters);
  for (const parameter of all) if (parameter.required !== true) empty(parameter);
  return JSON.stringify(document);
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
  return Object.entries(example).map(([name, value]) => `${name}=${String(value)}`).join('&');
}
