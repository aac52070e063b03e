/** Where the API begins (service §9). */
export const API_PREFIX = '/api/v1';
