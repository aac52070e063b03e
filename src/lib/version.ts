/** The release, the same as in package.json (a test compares). */
export const version = '0.1.0';
