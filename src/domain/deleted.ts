/** The response to a deletion, as JSON text. */
export const DELETED = '{"deleted":true}';
