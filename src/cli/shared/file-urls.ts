import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { withFileUrls } from '../../domain/files/file-urls.ts';
import { print } from '../terminal/output.ts';
import type { Invocation } from './invocation.ts';
import { findRunningServer } from './running-server.ts';

/** The beginning of the URLs of files: the public address, else that of the running server; '' without both, so that they are paths. */
export function fileBaseUrl({ publicUrl, dataDir }: Config): string {
  return publicUrl === '' ? (findRunningServer(dataDir)?.endpoint?.address ?? '') : publicUrl;
}

/** Prints the result of a command as `printResult` does, with the URLs of attachments in `value` as the API would give them. */
export function printContent({ dir, json }: Invocation, value: unknown, human: () => string): void {
  print(json ? withFileUrls(JSON.stringify(value), fileBaseUrl(loadConfig({ dir, env: process.env, flags: {} }))) : human());
}
