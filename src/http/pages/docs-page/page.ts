/** swagger-ui-dist, which the page has loaded before. */
declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => void;

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
});
