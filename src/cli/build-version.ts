import { version } from '../model/version.ts';

/** The commit that was built; the build defines it unless that is a release (`tools/commit-of.mjs`). */
declare const COLLAB_COMMIT: string | undefined;

/**
 * The version of this program: that of the release, or between releases with the commit, such as `0.1.0-dev+35ba3b1`.
 */
export const buildVersion = typeof COLLAB_COMMIT === 'undefined' ? version : `${version}-dev+${COLLAB_COMMIT}`;
