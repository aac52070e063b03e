/**
 * The names of plugins: 2 to 40 of `a-z 0-9 -`, the first a letter. As a part of a file name they lead to no other
 * folder.
 */
export const PLUGIN_NAME = /^[a-z][a-z0-9-]{1,39}$/;
