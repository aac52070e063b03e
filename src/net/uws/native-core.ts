import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as UWebSockets from 'uWebSockets.js';
import { glibcVersion } from '../../lib/process/glibc-version.ts';
import { MAX_HEADER_BYTES } from '../core.ts';

/** The build of uWebSockets.js for this platform and this version of Node: the native core. */
export interface NativeCore {
  /** Its file in the package. */
  readonly file: string;
  /**
   * Whether it is the build of January 2024, for Node 20. docs/deploy/ lists what a proxy in front of it has to hide.
   */
  readonly old: boolean;
}

/** Where the native core runs; for messages to the operator. */
export const NATIVE_PLATFORMS =
  'it has builds for Linux with glibc on x64 and arm64: Node 20 (glibc 2.27 or later), 22 and 24 (glibc ' +
  '2.38 or later, as in Debian 13 and Ubuntu 24.04)';

/** The remedy if the native core is demanded and does not run here. */
export const OTHER_CORE =
  'Set core to auto or node to use the slower core of Node.js, or install another version of Node: ' +
  `${NATIVE_PLATFORMS}.`;

/** The native core for this platform and this version of Node, whether or not it can be loaded. */
export function nativeCore(): NativeCore {
  const file = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  return { file, old: isOldCore(file) };
}

/** Whether a core is the native one for Node 20, by its file; false for `node`. */
export function isOldCore(file: string): boolean {
  const [, modules] = /_(\d+)\.node$/.exec(file) ?? [];
  return modules !== undefined && Number(modules) <= 120;
}

/**
 * Checks that the file of the native core exists, without loading it.
 * @throws {Error} with one line for the operator if uWebSockets.js has none for this platform and this version of Node
 */
export function requireNativeCore(): void {
  const folder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
  if (!existsSync(join(folder, nativeCore().file))) throw unsupported();
}

/** Loads the native core. Throws an `Error` with one line for the operator if none runs here. */
export function loadNativeCore(): typeof UWebSockets {
  // The core reads the variable once, while it is loaded. Its default, 4 KiB, refuses legitimate requests.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(MAX_HEADER_BYTES);
  try {
    // Not a static import, which would fail before the error can be explained.
    return createRequire(import.meta.url)('uWebSockets.js') as typeof UWebSockets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND')
      throw new Error('uWebSockets.js is not installed', { cause: error });
    throw unsupported(error);
  }
}

function unsupported(cause?: unknown): Error {
  const libc = glibcVersion();
  const system = `${process.platform} ${process.arch}, Node ${process.versions.node}, ${libc === null ? 'without glibc' : `glibc ${libc}`}`;
  return new Error(`uWebSockets.js has no build that runs on ${system}`, { cause });
}
