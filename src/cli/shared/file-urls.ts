import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { containsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';
import { print } from '../terminal/output.ts';
import type { Invocation } from './invocation.ts';
import { findRunningServer } from './running-server.ts';

/**
 * The beginning of the URLs of files: the public address, else that of the running server; '' without both, so that
 * they are paths.
 */
export function fileBaseUrl({ publicUrl, dataDir }: Config): string {
  return publicUrl === '' ? (findRunningServer(dataDir)?.endpoint?.address ?? '') : publicUrl;
}

/** JSON text with the URLs of attachments as the API would give them. Looks for the server only if there are any. */
export function withServerUrls(text: string, config: () => Config): string {
  return containsFileUrls(text) ? withFileUrls(text, fileBaseUrl(config())) : text;
}

/**
 * Prints the result of a command as `printResult` does, with the URLs of attachments in `value` as the API would give
 * them.
 */
export function printContent({ dir, json }: Invocation, value: unknown, human: () => string): void {
  print(json ? withServerUrls(JSON.stringify(value), () => loadConfig({ dir, env: process.env, flags: {} })) : human());
}
