/** The oldest version of Node that has all that is used: its major and minor number. */
const LEAST = [20, 12] as const;
/** Major versions that the tests run on. */
const TESTED: readonly number[] = [20, 22, 24];

/** What this version of Node is to us: `old` has not all that is used, `untested` is not one that the tests run on. */
export function judgeNode(version: string): 'tested' | 'untested' | 'old' {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) return 'old';
  return TESTED.includes(major) ? 'tested' : 'untested';
}

/**
 * One line for the operator where Node is too old for this program; null otherwise. Nothing else may be loaded before:
 * an old Node fails while it links the modules, in words for nobody.
 */
export function refusalOfNode(): string | null {
  const { platform, arch, versions } = process;
  if (judgeNode(versions.node) !== 'old') return null;
  return `collab: Node ${versions.node} (${platform} ${arch}) is too old: Collab needs Node ${LEAST.join('.')} or later and is tested with ${TESTED.join(', ')}. Install one of these and call it again.`;
}
