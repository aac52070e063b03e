/** Bytes in a megabyte as options, quotas and messages count it. */
export const MEGABYTE = 1024 * 1024;
