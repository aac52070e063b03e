/** The folder that --dir names in the arguments of a command line; undefined without the option. */
export function givenFolder(argv: readonly string[]): string | undefined {
  const ends = argv.indexOf('--');
  const words = ends < 0 ? argv : argv.slice(0, ends);
  // As commander: the last one counts.
  const at = words.findLastIndex((word) => word === '--dir' || word.startsWith('--dir='));
  if (at < 0) return undefined;
  return words[at] === '--dir' ? words[at + 1] : words[at]?.slice('--dir='.length);
}
