/** The glibc version of this process, such as `2.41`; null with another C library. Takes tens of milliseconds. */
export function glibcVersion(): string | null {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime ?? null;
}
