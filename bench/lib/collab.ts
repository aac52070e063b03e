import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './folders.ts';
import type { Plan } from './plan.ts';
import { freePort, startServer } from './server-process.ts';
import { commentPost, credentialHeaders, type Target, type TargetName } from './target.ts';
import { mintToken } from './tokens.ts';

/** A folder created by `collab init`, and the output of init. */
export interface Installation {
  /** The built command that created it. */
  readonly bin: string;
  readonly dir: string;
  /** The environment that init created. */
  readonly environment: { readonly id: string };
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}

/**
 * Creates an environment with the default options; only the address of the load is exempt from the rate limit, and
 * users have no quotas.
 *
 * @param options what config.json holds besides
 */
export function installCollab(bin: string, options: Readonly<Record<string, unknown>> = {}): Installation {
  if (!existsSync(bin)) throw new Error(`${bin} is missing: run \`npm run build\` first`);
  // The options come before init, which creates the environment where they say.
  const dir = newConfiguredFolder(options);
  const printed = execFileSync(process.execPath, [bin, 'init', '--dir', dir, '--json'], { encoding: 'utf8' });
  const made = JSON.parse(printed) as Installation;
  liftQuotas(bin, dir);
  return { ...made, bin, dir };
}

/** Creates a folder with a config.json of these options, which exempts the load from the rate limit. */
export function newConfiguredFolder(options: Readonly<Record<string, unknown>>): string {
  const dir = newFolder('collab');
  const config = { rateLimit: { exempt: ['127.0.0.0/8'] }, ...options };
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config, null, 2));
  return dir;
}

/**
 * Removes what bounds one user, because the uploads of a case all come from one. Builds from before quotas have no such
 * option.
 */
function liftQuotas(bin: string, dir: string): void {
  const quotas = ['userComments', 'userUploadMb', 'userWritesPerMinute'].map((name) => `${name}=off`).join(',');
  spawnSync(process.execPath, [bin, 'env', 'update', 'default', '--quotas', quotas, '--dir', dir], { stdio: 'ignore' });
}

/** A running build of Collab that is being measured. */
export interface Collab extends Target {
  /** Its folder. */
  readonly dir: string;
}

/**
 * Starts the build to measure and, if the plan has one, the earlier build, each in its own folder with default options.
 */
export async function startBuilds({ bin, before }: Plan): Promise<Collab[]> {
  const builds = [await startCollab(installCollab(bin))];
  if (before !== null) builds.push(await startCollab(installCollab(before), 'auto', 'collab before'));
  return builds;
}

/** Starts the build to measure on the HTTP core of Node.js, in a folder of its own. */
export function startOnNodeCore({ bin }: Plan): Promise<Collab> {
  return startCollab(installCollab(bin, { core: 'node' }), 'auto', 'collab, core node');
}

/** Starts Collab in the folder, by default with as many web workers as cores, or with two. */
export async function startCollab(
  installation: Installation,
  workers: 'auto' | 2 = 'auto',
  name: TargetName = workers === 2 ? 'collab, 2 workers' : 'collab',
): Promise<Collab> {
  const port = await freePort();
  const { bin, dir, secretKey, publishableKey, jwtSecret, jwtKid } = installation;
  const server = await startServer(port, [
    bin,
    'start',
    '--dir',
    dir,
    '--port',
    String(port),
    '--workers',
    String(workers),
  ]);
  const authorization = `Bearer ${secretKey}`;
  return {
    name,
    dir,
    server,
    authorization,
    greets: true,
    socketHeaders: (userId) => credentialHeaders(publishableKey, mintToken(jwtSecret, jwtKid, userId)),
    eventRequest: (threadId) => commentPost(port, threadId, authorization),
  };
}
