import t from 'tap';
import { yieldToEventLoop } from '../../src/lib/concurrency/event-loop.ts';

t.test('work pauses once the running turn of the event loop is long, and goes on in the next one', async (t) => {
  const [first, second] = [yieldToEventLoop(), yieldToEventLoop()];
  t.equal(first, undefined, 'the first call of a turn begins to measure it');
  t.equal(second, undefined);
  const end = performance.now() + 30;
  while (performance.now() < end);
  let isNextTurn = false;
  setImmediate(() => (isNextTurn = true));
  const pause = yieldToEventLoop();
  t.ok(pause instanceof Promise, 'after 25 ms');
  await pause;
  t.ok(isNextTurn, 'other work had a turn');
  t.equal(yieldToEventLoop(), undefined, 'the next turn is measured anew');
});
