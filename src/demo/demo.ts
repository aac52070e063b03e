import { readFileSync } from 'node:fs';
import { operatorActor } from '../domain/access/actor.ts';
import type { Context } from '../domain/context.ts';
import { findEnvironment } from '../domain/environments/environments.ts';
import { listKeys } from '../domain/access/keys.ts';
import { signUserToken } from '../domain/access/tokens.ts';
import { escapeId, usersOf } from '../domain/records/partitions.ts';
import { putUser } from '../domain/users/users.ts';
import { CollabError } from '../model/errors.ts';
import type { Environment } from '../model/environments/environment.ts';

/** The users that a visitor of the demo page can act as. */
export const demoUsers = [
  { userId: 'ann', name: 'Ann' },
  { userId: 'bob', name: 'Bob' },
] as const;

/**
 * Users of a demo server that can be authors before anyone has connected: those of the page, and the bot that its panel
 * posts as.
 */
const demoAuthors = [
  ...demoUsers.map(({ userId, name }) => ({ id: userId, fields: { name } })),
  { id: 'ci-bot', fields: { name: 'CI', kind: 'bot' } },
] as const;

/** The room that the demo page shows. */
export const DEMO_ROOM = 'demo';

const SESSION_SECONDS = 3600;

/** A file of the demo page. */
export interface DemoFile {
  readonly type: string;
  readonly text: string;
  /** Whether the demo page shows it in a frame. */
  readonly framed: boolean;
}

const html = 'text/html; charset=utf-8';
const script = 'text/javascript; charset=utf-8';
const style = 'text/css; charset=utf-8';

const FRAMED = '/demo/page';

/** Path -> the file in dist/demo and its content type. `/` shows `/demo/page` twice, as two users. */
const fileNames: Readonly<Record<string, readonly [name: string, type: string]>> = {
  '/': ['index.html', html],
  '/demo/demo.js': ['demo.js', script],
  '/demo/demo.css': ['style.css', style],
  [FRAMED]: ['product-page.html', html],
  '/demo/product.js': ['product.js', script],
  '/demo/product.css': ['product-style.css', style],
  '/demo/icon.svg': ['icon.svg', 'image/svg+xml'],
};

/**
 * The files of the demo page and the sessions it requests. Any visitor can write, so never enable it on a public
 * server.
 */
export interface Demo {
  /** The files of the pages: path -> content type and content. */
  readonly files: Readonly<Record<string, DemoFile>>;
  /**
   * Returns as JSON text what a browser needs to connect as one of `demoUsers`:
   * `{publishableKey, token, expiresAt, userId, users, environmentId, roomId}`. The token is valid for an hour.
   * Rejects with `invalid_request` for other users, and with `key_not_found` if the environment has no publishable key.
   */
  session(userId: string): Promise<string>;
}

/** Creates the demo for the environment with this slug. Throws if `npm run build` has not built the page's files. */
export function createDemo(ctx: Context, slug: string): Demo {
  return {
    files: Object.fromEntries(
      Object.entries(fileNames).map(([path, [name, type]]) => [
        path,
        { type, text: asset(name), framed: path === FRAMED },
      ]),
    ),
    session: async (userId) => session(ctx, await findEnvironment(ctx, slug), userId),
  };
}

/**
 * As `createDemo`, and creates those of `demoAuthors` that the environment lacks; a new folder has none. What the
 * store refuses, e.g. because the disk is full, is left out, so that the server starts.
 */
export async function startDemo(ctx: Context, slug: string): Promise<Demo> {
  try {
    await createMissingAuthors(ctx, await findEnvironment(ctx, slug));
  } catch (error) {
    if (!(error instanceof CollabError)) throw error;
  }
  return createDemo(ctx, slug);
}

/** Creates those of `demoAuthors` that an environment lacks. */
export async function createMissingAuthors(ctx: Context, environment: Environment): Promise<void> {
  for (const { id, fields } of demoAuthors) {
    const known = await ctx.store.get(usersOf(environment.id), escapeId(id));
    if (known === undefined) await putUser(ctx, operatorActor(environment), id, fields);
  }
}

async function session(ctx: Context, environment: Environment, userId: string): Promise<string> {
  const user = demoUsers.find((known) => known.userId === userId);
  if (user === undefined) {
    throw new CollabError(
      'invalid_request',
      `user must be one of ${demoUsers.map((known) => known.userId).join(', ')}`,
    );
  }
  const publishableKey = await publishableKeyOf(ctx, environment);
  const { token, expiresAt } = await signUserToken(ctx, environment, { ...user, ttlSeconds: SESSION_SECONDS });
  return JSON.stringify({
    publishableKey,
    token,
    expiresAt,
    userId,
    users: demoUsers,
    environmentId: environment.id,
    roomId: DEMO_ROOM,
  });
}

async function publishableKeyOf(ctx: Context, environment: Environment): Promise<string> {
  for (const key of await listKeys(ctx, environment)) {
    const expired = key.expiresAt !== null && Date.parse(key.expiresAt) <= ctx.clock.now();
    if (key.kind === 'publishable' && key.revokedAt === null && !expired) return key.value;
  }
  const remedy = `collab key create --env ${environment.slug} --kind publishable --dir <folder>`;
  throw new CollabError(
    'key_not_found',
    `Environment ${environment.slug} has no publishable key. Create one with: ${remedy}`,
  );
}

/**
 * Reads a file that build.mjs has built. The bundle of this module is one folder below dist; tests run it from source.
 */
function asset(name: string): string {
  const folder = import.meta.url.endsWith('.ts') ? '../../dist/demo/' : '../demo/';
  return readFileSync(new URL(folder + name, import.meta.url), 'utf8');
}
