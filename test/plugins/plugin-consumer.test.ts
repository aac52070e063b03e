import t from 'tap';
import { PluginKv } from '../../src/domain/plugins/kv.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import { HookMeter } from '../../src/plugins/thread/hook-meter.ts';
import type { PluginThread } from '../../src/plugins/thread/plugin-thread.ts';
import type { PluginInfo } from '../../src/plugins/thread/messages.ts';
import { pluginConsumer } from '../../src/plugins/background/plugin-consumer.ts';
import { addComment, createWorld, startThread } from '../domain/world.ts';

const action = { type: '*', timeoutMs: 1_000, whenKv: 'endpoint/', typesIn: 'events', ordered: true } as const;
const info: PluginInfo = {
  name: 'hooked',
  version: '1.0.0',
  isolated: false,
  settings: { base: { enabled: true, priority: undefined, config: {} }, environments: new Map() },
  hooks: { filters: [], actions: [action], queues: [], routes: [], commands: [] },
};

t.test('events of types that no stored list names do not reach the thread of a plugin', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  await addComment(world, threadId, { body: 'hello' });
  const environmentId = world.environment.id;
  const stored = await world.ctx.store.events(streamOf(world.environment), 0, 100);
  const events = stored.map(({ text }) => JSON.parse(text) as EventEnvelope);
  const kv = new PluginKv(world.ctx, environmentId, 'hooked');
  const received: string[] = [];
  const thread = {
    run: (_hook: object, event: EventEnvelope) => Promise.resolve(received.push(event.type)),
  } as unknown as PluginThread;
  const consumer = pluginConsumer(world.ctx, info, thread, new HookMeter('hooked', undefined));
  const handled = async (): Promise<string[]> => {
    received.length = 0;
    for (const event of events) await consumer?.handle({ environmentId, event }, new AbortController().signal, 1);
    return received.filter((type) => type === 'thread.created' || type === 'comment.created');
  };
  t.strictSame(await handled(), [], 'without an endpoint');
  await kv.put('endpoint/1', { events: ['comment.created'] });
  t.strictSame(await handled(), ['comment.created']);
  await kv.put('endpoint/2', { events: ['thread.created'] });
  t.strictSame(await handled(), ['thread.created', 'comment.created']);
  await kv.delete('endpoint/2');
  t.strictSame(await handled(), ['comment.created'], 'again after a change');
  await kv.put('endpoint/2', { events: null });
  t.equal(await handled().then(() => received.length), events.length, 'null is all');
});
