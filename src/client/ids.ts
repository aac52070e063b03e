const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** An id for a record that the client creates: the prefix, `_c` and 20 random characters (100 bits). */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(20));
  return `${prefix}_c${Array.from(bytes, (byte) => ALPHABET[byte & 31]).join('')}`;
}
