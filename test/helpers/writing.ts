import { createComment } from '../../src/domain/comments/comments.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import { putUser } from '../../src/domain/users/users.ts';
import type { World } from './realtime.ts';
import { streamOf } from '../../src/domain/events/streams.ts';

/** Writes of a backend, as the author `bot`. */
export class Backend {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Makes the author known. One event. */
  static async of(world: World): Promise<Backend> {
    await putUser(world.ctx, world.backend, 'bot', { kind: 'bot' });
    return new Backend(world);
  }

  /** Creates a thread and returns its id. One event. */
  async thread(roomId = 'lobby', body = 'hello'): Promise<string> {
    const { ctx, backend } = this.#world;
    const created = await createThread(ctx, backend, roomId, { userId: 'bot', body }, null);
    return (JSON.parse(created.body) as { thread: { id: string } }).thread.id;
  }

  /** Creates a comment and returns its id. One event. */
  async comment(threadId: string, body = 'hello'): Promise<string> {
    const { ctx, backend } = this.#world;
    const created = await createComment(ctx, backend, threadId, { userId: 'bot', body }, null);
    return (JSON.parse(created.body) as { comment: { id: string } }).comment.id;
  }

  /** Position of the last event. */
  head(): Promise<number> {
    return this.#world.ctx.store.lastSeq(streamOf(this.#world.environment));
  }
}
