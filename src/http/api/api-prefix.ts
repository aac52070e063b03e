/** The prefix of every path of the API (docs/api.md, "Versions"). */
export const API_PREFIX = '/api/v1';
