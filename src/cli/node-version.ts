/** The oldest supported version of Node: major and minor number. */
const OLDEST = [20, 12] as const;
/**
 * The versions that Collab is tested with: major, and the oldest minor number of each. As `engines` in package.json.
 */
const TESTED: readonly (readonly [number, number])[] = [OLDEST, [22, 22], [24, 0], [26, 0]];

/** How well a version of Node is supported: `old` lacks features that Collab needs, `untested` is not tested. */
export function nodeSupport(version: string): 'tested' | 'untested' | 'old' {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) return 'old';
  return TESTED.some(([testedMajor, oldestMinor]) => major === testedMajor && minor >= oldestMinor)
    ? 'tested'
    : 'untested';
}

/**
 * A message for the operator if Node is too old; null otherwise. Call it before any other module is loaded, because an
 * old Node fails while linking them, with an error that does not say why.
 */
export function unsupportedNodeMessage(): string | null {
  if (nodeSupport(process.versions.node) !== 'old') return null;
  return (
    `${thisNode()} is too old: Collab needs Node ${OLDEST.join('.')} or later and is tested with ` +
    `${testedVersions()}. Install one of these versions and run the command again.`
  );
}

/** A message for the operator who starts a server with a version of Node that is not tested; null otherwise. */
export function untestedNodeMessage(): string | null {
  return nodeSupport(process.versions.node) === 'untested'
    ? `${thisNode()} is not tested with Collab, which starts all the same. Tested are ${testedVersions()}.`
    : null;
}

function thisNode(): string {
  const { platform, arch, versions } = process;
  return `collab: Node ${versions.node} (${platform} ${arch})`;
}

function testedVersions(): string {
  return TESTED.map(([major, minor]) => (minor === 0 ? String(major) : `${major} (${major}.${minor} or later)`)).join(
    ', ',
  );
}
