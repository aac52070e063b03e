/** The version of the C library that this process runs with, such as `2.41`; null where it is not glibc. Takes tens of milliseconds. */
export function glibcVersion(): string | null {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime ?? null;
}
