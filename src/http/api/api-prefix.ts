/** Where the API begins (docs/api.md, "Versions"). */
export const API_PREFIX = '/api/v1';
