import { readFileSync } from 'node:fs';
import type { Context } from '../domain/context.ts';
import { findEnvironment } from '../domain/environments/environments.ts';
import { listKeys } from '../domain/access/keys.ts';
import { mintUserToken } from '../domain/access/tokens.ts';
import { CollabError } from '../model/errors.ts';
import type { Environment } from '../model/environment.ts';

/** Who one can be on the demo page. */
export const demoUsers = [
  { userId: 'ann', name: 'Ann' },
  { userId: 'bob', name: 'Bob' },
] as const;

/** The room that the demo page shows. */
const DEMO_ROOM = 'demo';

const SESSION_SECONDS = 3600;

/** What the demo page consists of and asks the server for. It lets anyone who can open it write: never on a public server. */
export interface Demo {
  /** The files of the page, whole. */
  readonly page: { readonly html: string; readonly script: string; readonly style: string; readonly icon: string };
  /**
   * JSON text of all that a browser needs to connect as one of `demoUsers`:
   * `{publishableKey, token, expiresAt, userId, users, environmentId, roomId}`. The token is good for an hour.
   * Throws `invalid_request` for anyone else, `key_not_found` while the environment has no publishable key.
   */
  session(userId: string): Promise<string>;
}

/** The demo over the environment that `slug` names. Throws when `npm run build` has not made the page's files. */
export function createDemo(ctx: Context, slug: string): Demo {
  return {
    page: { html: asset('index.html'), script: asset('demo.js'), style: asset('style.css'), icon: asset('icon.svg') },
    session: async (userId) => session(ctx, await findEnvironment(ctx, slug), userId),
  };
}

async function session(ctx: Context, environment: Environment, userId: string): Promise<string> {
  const user = demoUsers.find((known) => known.userId === userId);
  if (user === undefined) {
    throw new CollabError('invalid_request', `user must be one of ${demoUsers.map((known) => known.userId).join(', ')}`);
  }
  const publishableKey = await publishableKeyOf(ctx, environment);
  const { token, expiresAt } = await mintUserToken(ctx, environment, { ...user, ttlSeconds: SESSION_SECONDS });
  return JSON.stringify({ publishableKey, token, expiresAt, userId, users: demoUsers, environmentId: environment.id, roomId: DEMO_ROOM });
}

async function publishableKeyOf(ctx: Context, environment: Environment): Promise<string> {
  for (const key of await listKeys(ctx, environment)) {
    const expired = key.expiresAt !== null && Date.parse(key.expiresAt) <= ctx.clock.now();
    if (key.kind === 'publishable' && key.revokedAt === null && !expired) return key.value;
  }
  throw new CollabError('key_not_found', `Environment ${environment.slug} has no publishable key; make one with: collab key create --env ${environment.slug} --kind publishable`);
}

/** Built by build.mjs. Bundled, this module lies one folder below dist; from source (tests) it reads the same files. */
function asset(name: string): string {
  const folder = import.meta.url.endsWith('.ts') ? '../../dist/demo/' : '../demo/';
  return readFileSync(new URL(folder + name, import.meta.url), 'utf8');
}
