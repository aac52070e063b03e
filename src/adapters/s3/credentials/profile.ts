import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../../lib/thrown.ts';
import { CredentialFailure, type CredentialProvider, type Credentials } from './source.ts';
import type { Environment } from './services.ts';

/** What a profile says. */
type Section = Readonly<Record<string, string>>;

/** Settings of a profile that would lead to keys in ways that are not supported. */
const unsupported = ['role_arn', 'credential_process', 'sso_session', 'sso_start_url', 'credential_source'];

/** Keys in the shared credentials file, or the shared config file. Null if no file has the profile. */
export async function profileProvider(env: Environment): Promise<CredentialProvider | null> {
  const profile = profileName(env);
  const isNamed = env['AWS_PROFILE'] !== undefined && env['AWS_PROFILE'] !== '';
  const section = await readProfile(env);
  if (section === null && !isNamed) return null;
  const name = `the profile ${profile}`;
  const files = `${credentialsFile(env)} and ${configFile(env)}`;
  if (section === null)
    throw new CredentialFailure(`AWS_PROFILE names ${profile}, which is not in ${files}`, { isTransient: false });
  if (section['aws_access_key_id'] === undefined) {
    const way = unsupported.find((setting) => section[setting] !== undefined);
    if (way === undefined && !isNamed) return null;
    const why = way === undefined ? 'has no aws_access_key_id' : `has ${way}, which is not supported`;
    throw new CredentialFailure(`${name} in ${files} ${why}`, { isTransient: false });
  }
  return {
    name,
    // Read anew, because another program may replace temporary keys.
    load: async () => keysOf(name, (await readProfile(env)) ?? {}),
  };
}

/** The region of the profile; undefined if it has none. */
export async function profileRegion(env: Environment): Promise<string | undefined> {
  return (await readProfile(env))?.['region'];
}

function keysOf(name: string, section: Section): Credentials {
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey, aws_session_token: token } = section;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new CredentialFailure(`${name} has no aws_access_key_id with an aws_secret_access_key`, {
      isTransient: false,
    });
  return { accessKeyId, secretAccessKey, sessionToken: token };
}

/** The settings of the profile in both files; those of the credentials file win. Null if neither has it. */
async function readProfile(env: Environment): Promise<Section | null> {
  const profile = profileName(env);
  const inConfig = profile === 'default' ? ['default', 'profile default'] : [`profile ${profile}`];
  const config = sectionOf(await readText(configFile(env)), inConfig);
  const credentials = sectionOf(await readText(credentialsFile(env)), [profile]);
  return config === null && credentials === null ? null : { ...config, ...credentials };
}

function sectionOf(text: string, names: readonly string[]): Section | null {
  let section: Record<string, string> | null = null;
  let isIn = false;
  for (const line of text.split(/\r?\n/)) {
    const header = /^\s*\[\s*([^\]]+?)\s*\]/.exec(line);
    if (header !== null) {
      isIn = names.includes((header[1] ?? '').replaceAll(/\s+/g, ' '));
      if (isIn) section ??= {};
    } else if (isIn && section !== null) {
      // Indented lines belong to the setting before them.
      const setting = /^([\w-]+)\s*=\s*(.*?)\s*$/.exec(line);
      if (setting !== null) section[(setting[1] ?? '').toLowerCase()] = setting[2] ?? '';
    }
  }
  return section;
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return '';
    throw new CredentialFailure(messageOf(error), { isTransient: false, cause: error });
  }
}

const profileName = (env: Environment): string => nonEmpty(env['AWS_PROFILE']) ?? 'default';
const credentialsFile = (env: Environment): string =>
  nonEmpty(env['AWS_SHARED_CREDENTIALS_FILE']) ?? join(homedir(), '.aws', 'credentials');
const configFile = (env: Environment): string => nonEmpty(env['AWS_CONFIG_FILE']) ?? join(homedir(), '.aws', 'config');

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);
