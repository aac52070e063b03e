/**
 * `import(specifier)`, of a package or a URL, for code that workers run. In a built worker that code comes from a code
 * cache (code-cache.ts), where V8 has no `import()`; this file is then a module of its own beside it, so packages are
 * found from there.
 */
export const importModule = (specifier: string): Promise<unknown> => import(specifier);
