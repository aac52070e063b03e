/** The oldest supported version of Node: major and minor number. */
const OLDEST = [20, 12] as const;
/** The major versions that Collab is tested with. */
const TESTED: readonly number[] = [20, 22, 24, 26];

/** How well a version of Node is supported: `old` lacks features that Collab needs, `untested` is not tested. */
export function nodeSupport(version: string): 'tested' | 'untested' | 'old' {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) return 'old';
  return TESTED.includes(major) ? 'tested' : 'untested';
}

/**
 * A message for the operator if Node is too old; null otherwise. Call it before any other module is loaded, because an old
 * Node fails while linking them, with an error that does not say why.
 */
export function unsupportedNodeMessage(): string | null {
  const { platform, arch, versions } = process;
  if (nodeSupport(versions.node) !== 'old') return null;
  return `collab: Node ${versions.node} (${platform} ${arch}) is too old: Collab needs Node ${OLDEST.join('.')} or later and is tested with ${TESTED.join(', ')}. Install one of these versions and run the command again.`;
}
