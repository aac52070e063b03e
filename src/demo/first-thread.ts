import { operatorActor } from '../domain/access/actor.ts';
import { createThread } from '../domain/comments/threads.ts';
import type { Context } from '../domain/context.ts';
import { findEnvironment } from '../domain/environments/environments.ts';
import { createMissingAuthors, DEMO_ROOM } from './demo.ts';

/** What Bob says on the paragraph below the heading of the demo page. */
const BODY =
  'This is a thread, pinned to what it is about. Reply to it or resolve it: the other half of the window shows it at once. ' +
  'To begin one of your own, choose “Add a comment” and click anywhere on the page.';

/**
 * Creates the thread with which the demo page begins: it shows a pin and says how to comment. For a new environment;
 * its slug is `slug`.
 *
 * @throws {CollabError} as `createThread`
 */
export async function createFirstThread(ctx: Context, slug: string): Promise<void> {
  const environment = await findEnvironment(ctx, slug);
  await createMissingAuthors(ctx, environment);
  const position = { x: 0.5, y: 0.5, selector: '#summary', elementOffsetX: 0.9, elementOffsetY: 0.5 };
  await createThread(ctx, operatorActor(environment), DEMO_ROOM, { userId: 'bob', body: BODY, position }, null);
}
